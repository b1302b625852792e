package definition

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// bucketVolumes checks a definition whose volumes are buckets.
func (c *check) bucketVolumes(root node) {
	if rotation := root.key("volumeStaging").key("onRotation"); rotation.value == string(pavv1.RotationRestage) &&
		root.key("volumeStaging").key("recovery").value == string(pavv1.StagingRecoveryNone) {
		c.errorf(rotation.field, "needs recovery: Restage, which stages a volume again when its staging pod has ended; set that, or leave onRotation out")
	}
	creation := root.key("volumeCreation")
	if creation.key("fromBucket").value != true {
		return
	}
	for _, needed := range []struct{ name, why string }{
		{"bucketCreation", "it creates the buckets that volumes are, by volumeCreation.fromBucket"},
		{"bucketAccessGrant", "it gives each volume an account for the bucket that the volume is, by volumeCreation.fromBucket"},
	} {
		if section := root.key(needed.name); section.value == nil {
			c.errorf(section.field, "is missing; %s", needed.why)
		}
	}
	for _, of := range []struct{ name, instead string }{
		{"handle", "the handle is the identifier of the bucket, for which there is bucketCreation.bucketId"},
		{"podTemplate", "bucketCreation.podTemplate creates the bucket"},
		{"dataSources", "no pod copies the data of a source into a new bucket"},
		{"dependsOnSource", "buckets have no sources"},
	} {
		if field := creation.key(of.name); field.value != nil {
			c.errorf(field.field, "cannot be there beside fromBucket: %s; leave it out, or fromBucket", of.instead)
		}
	}
	if deletion := root.key("volumeDeletion").key("podTemplate"); deletion.value != nil {
		c.errorf(deletion.field, "cannot be there beside volumeCreation.fromBucket: bucketDeletion.podTemplate deletes the bucket; leave it out")
	}
	pod := root.key("volumeStaging").key("podTemplate")
	for _, n := range []node{pod, pod.key("metadata"), pod.key("metadata").key("namespace")} {
		if text, isText := n.value.(string); isText && template.HasTemplate(text) {
			c.errorf(n.field, "must not be a template where volumes are buckets, as the Secrets with their credentials are written to the namespace of the staging pod before there is one; write it plain")
		}
	}
}
