package podplan

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// RecordedClass returns the recorded StorageClass of a volume; nil if the volume is static.
func RecordedClass(volume *pavv1.PavVolume) (map[string]any, error) {
	if volume.Spec.Static {
		return nil, nil
	}
	return recorded(volume, "spec.storageClass", volume.Spec.StorageClass)
}

// RecordedClaim returns the recorded copy of a volume's claim, which is kept up to date until the claim is deleted.
func RecordedClaim(volume *pavv1.PavVolume) (map[string]any, error) {
	return recorded(volume, "spec.claim", volume.Spec.Claim)
}

// RecordedProvisionedClaim returns a volume's claim as it was when the volume was created.
func RecordedProvisionedClaim(volume *pavv1.PavVolume) (map[string]any, error) {
	raw, field := provisionedClaim(volume)
	return recorded(volume, field, *raw)
}

// provisionedClaim returns a volume's claim as it was when the volume was created, and the field that has it. Earlier
// versions of PaV recorded it only in spec.claim.
func provisionedClaim(volume *pavv1.PavVolume) (raw *apiextensionsv1.JSON, field string) {
	if claim := volume.Status.ProvisionedClaim; claim != nil {
		return claim, "status.provisionedClaim"
	}
	return &volume.Spec.Claim, "spec.claim"
}

func recorded(volume *pavv1.PavVolume, field string, raw apiextensionsv1.JSON) (map[string]any, error) {
	return copyOf(volume, "PavVolume", field, &raw)
}

// copyOf returns the copy of an object in a field of a record of a kind; nil if it has none.
func copyOf(record metav1.Object, kind, field string, raw *apiextensionsv1.JSON) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	value, err := template.Decode(*raw)
	if err != nil {
		return nil, fmt.Errorf("%s of %s %q: %w", field, kind, record.GetName(), err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s of %s %q is not an object", field, kind, record.GetName())
	}
	return object, nil
}
