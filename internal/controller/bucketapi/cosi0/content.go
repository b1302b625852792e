package cosi0

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// newContent returns the BucketContent of a Bucket.
func newContent(o observation) *cosiv0.BucketContent {
	provisioner := o.bucket.Spec.Provisioner
	content := &cosiv0.BucketContent{ObjectMeta: metav1.ObjectMeta{
		Name: o.contentName(), Finalizers: []string{cosiv0.Finalizer},
		Labels: map[string]string{pavv1.ProvisionerLabel: provisioner, cosiv0.ProvisionerLabel: provisioner},
	}}
	content.Spec.BucketRef = &cosiv0.BucketReference{ResourceVersion: o.object.ResourceVersion}
	fill(content, o)
	return content
}

// fill writes into a BucketContent what the records of a Bucket say. The version of the Bucket stays the one that it had when the
// BucketContent was written.
func fill(content *cosiv0.BucketContent, o observation) {
	record, spec := &o.bucket.Spec, &content.Spec
	version := ""
	if spec.BucketRef != nil {
		version = spec.BucketRef.ResourceVersion
	}
	*spec = cosiv0.BucketContentSpec{
		Provisioner: record.Provisioner, ReleasePolicy: cosiv0.ReleasePolicy(record.ReclaimPolicy), AccessModes: []cosiv0.AccessMode{o.accessMode()},
		SupportedProtocols: o.class.SupportedProtocols, BucketClassName: o.class.Name,
		BucketRef: &cosiv0.BucketReference{Namespace: o.name.Namespace, Name: o.name.Name, UUID: o.uid, ResourceVersion: version},
		SecretRef: new(o.secretOf()), BucketIdentifier: o.bucket.Status.BucketID, Parameters: record.Parameters,
	}
}

// shows reports whether a BucketContent shows what the records of the Bucket say.
func shows(content *cosiv0.BucketContent, o observation) bool {
	filled := content.DeepCopy()
	fill(filled, o)
	return content.Status.Phase == cosiv0.ContentBound && equality.Semantic.DeepEqual(content, filled)
}
