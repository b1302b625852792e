package selftest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/source"
)

// input is the content of the files.
type input struct {
	// document is the PavProvisioner, with its position in the file.
	document source.Document

	// class is the StorageClass of the provisioner, and claim a claim of that class. The test's own are copies of
	// them; nil if the files have none.
	class *storagev1.StorageClass
	claim *corev1.PersistentVolumeClaim

	// bucket, bucketClass and accessClass are the same for buckets, and secrets are the Secrets that claims in the files would get.
	bucket      *objectbucketv1.ObjectBucketClaim
	bucketClass *cosiv1.BucketClass
	accessClass *cosiv1.BucketAccessClass
	secrets     []string

	// others are all other objects, except pods that use the claim or the bucket.
	others []*unstructured.Unstructured
}

// provisioner is the name of the PavProvisioner in the files.
func (in *input) provisioner() string {
	return in.document.Name()
}

// definition returns the PavProvisioner in the form that can be evaluated.
func (in *input) definition() (*pavv1.PavProvisioner, error) {
	p := &pavv1.PavProvisioner{}
	if err := decode(in.document.Object, p); err != nil {
		return nil, fmt.Errorf("reading the PavProvisioner: %w", err)
	}
	return p, nil
}

// hasVolumes reports whether the definition has volumes, and not only buckets.
func (in *input) hasVolumes() bool {
	_, has, _ := unstructured.NestedFieldNoCopy(in.document.Object, "spec", "volumeStaging")
	return has
}

// read reads files, where "-" is standard input, and chooses the PavProvisioner with the name; the only one if the
// name is "".
func read(files []string, stdin io.Reader, name string) (*input, error) {
	var documents []source.Document
	for _, file := range files {
		more, err := source.Open(file, stdin)
		if err != nil {
			return nil, err
		}
		documents = append(documents, more...)
	}
	return sortOut(documents, name)
}

// sortOut assigns the documents to the fields of the input.
func sortOut(documents []source.Document, name string) (*input, error) {
	in, rest, err := choose(documents, name)
	if err != nil {
		return nil, err
	}
	if rest, err = in.takeClass(rest); err != nil {
		return nil, err
	}
	if rest, err = in.takeClaim(rest); err != nil {
		return nil, err
	}
	if rest, err = in.takeBuckets(rest); err != nil {
		return nil, err
	}
	for _, d := range rest {
		if (in.claim == nil || !usesClaim(d.Object, in.claim.Name)) && !usesSecret(d.Object, in.secrets) {
			in.others = append(in.others, &unstructured.Unstructured{Object: d.Object})
		}
	}
	return in, nil
}

// choose returns the selected PavProvisioner, and the documents that are not PavProvisioners.
func choose(documents []source.Document, name string) (*input, []source.Document, error) {
	var found []source.Document
	var names []string
	var rest []source.Document
	for _, d := range documents {
		if d.Kind() != "PavProvisioner" || d.Group() != pavv1.Group {
			rest = append(rest, d)
			continue
		}
		names = append(names, d.Name())
		if name == "" || d.Name() == name {
			found = append(found, d)
		}
	}
	switch {
	case len(names) == 0:
		return nil, nil, errors.New("there is no PavProvisioner in the files")
	case len(found) == 0:
		return nil, nil, fmt.Errorf("there is no PavProvisioner %q in the files, but %s", name, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, nil, fmt.Errorf("there are several PavProvisioners in the files: choose one with --provisioner: %s", strings.Join(names, ", "))
	}
	return &input{document: found[0]}, rest, nil
}

// takeClass removes the first StorageClass of the provisioner from the documents.
func (in *input) takeClass(documents []source.Document) ([]source.Document, error) {
	var rest []source.Document
	for _, d := range documents {
		provisioner, _, _ := unstructured.NestedString(d.Object, "provisioner")
		switch {
		case d.Kind() != "StorageClass" || provisioner != in.provisioner():
			rest = append(rest, d)
		case in.class == nil:
			in.class = &storagev1.StorageClass{}
			if err := decode(d.Object, in.class); err != nil {
				return nil, fmt.Errorf("reading StorageClass %q: %w", d.Name(), err)
			}
		}
	}
	return rest, nil
}

// takeClaim removes the claims of the class from the documents, and keeps the first.
func (in *input) takeClaim(documents []source.Document) ([]source.Document, error) {
	if in.class == nil {
		return documents, nil
	}
	var rest []source.Document
	for _, d := range documents {
		class, _, _ := unstructured.NestedString(d.Object, "spec", "storageClassName")
		switch {
		case d.Kind() != "PersistentVolumeClaim" || class != in.class.Name:
			rest = append(rest, d)
		case in.claim == nil:
			in.claim = &corev1.PersistentVolumeClaim{}
			if err := decode(d.Object, in.claim); err != nil {
				return nil, fmt.Errorf("reading PersistentVolumeClaim %q: %w", d.Name(), err)
			}
		}
	}
	return rest, nil
}

// usesClaim reports whether an object is a pod that uses the claim.
func usesClaim(object map[string]any, claim string) bool {
	if kind, _, _ := unstructured.NestedString(object, "kind"); kind != "Pod" {
		return false
	}
	volumes, _, _ := unstructured.NestedSlice(object, "spec", "volumes")
	for _, volume := range volumes {
		v, _ := volume.(map[string]any)
		if name, _, _ := unstructured.NestedString(v, "persistentVolumeClaim", "claimName"); name == claim {
			return true
		}
	}
	return false
}

// decode reads plain data into a type.
func decode(object map[string]any, into any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("writing it as JSON: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	return nil
}

// encode returns an object as plain data.
func encode(object any) (map[string]any, error) {
	data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("reading %T: %w", object, err)
	}
	return data, nil
}
