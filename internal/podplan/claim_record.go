package podplan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// RecordClaim returns the copy of a claim for its record, or an Error if it is too large.
func RecordClaim(claim map[string]any) (*apiextensionsv1.JSON, error) {
	raw, err := json.Marshal(claim)
	if err != nil {
		return nil, fmt.Errorf("encoding the claim: %w", err)
	}
	if len(raw) > pavv1.MaxClaimCopy {
		return nil, refuse("metadata: the claim has %d bytes, and may have %d for PaV to keep a copy of it: shorten its labels or annotations", len(raw), pavv1.MaxClaimCopy)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}

// CheckUnchanged returns an Error if a claim has changed since the beginning of an attempt: the volume must be
// created from the claim that was validated. Recorded is nil if nothing was recorded.
func CheckUnchanged(recorded *apiextensionsv1.JSON, claim map[string]any) error {
	if recorded == nil {
		return refuse("it is not recorded what was validated; the claim is validated again")
	}
	value, err := template.Decode(*recorded)
	if err != nil {
		return fmt.Errorf("status.provisionedClaim: %w", err)
	}
	then, ok := value.(map[string]any)
	if !ok {
		return refuse("status.provisionedClaim is not an object; the claim is validated again")
	}
	// Both are compared as JSON, so that numbers of different Go types are equal.
	raw, err := RecordClaim(claim)
	if err != nil {
		return err
	}
	if value, err = template.Decode(*raw); err != nil {
		return err
	}
	now, _ := value.(map[string]any)
	withoutNulls(then)
	withoutNulls(now)
	if changed := differences(then, now); len(changed) > 0 {
		return refuse("the claim's %s changed after it was validated; it is validated again", strings.Join(changed, ", "))
	}
	return nil
}

// withoutNulls removes the fields that are null, which Kubernetes has for absent, as in spec.dataSource.apiGroup: merge patches, by which
// records are written, cannot contain them.
func withoutNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, field any) bool { return field == nil })
		for _, field := range v {
			withoutNulls(field)
		}
	case []any:
		for _, item := range v {
			withoutNulls(item)
		}
	}
}

// differences lists the differences between two versions of a claim in the fields that users can change. Kubernetes
// writes the others: the status, and resource versions.
func differences(then, now map[string]any) []string {
	var changed []string
	for _, section := range []string{"metadata", "spec"} {
		before, _ := then[section].(map[string]any)
		after, _ := now[section].(map[string]any)
		keys := map[string]bool{}
		for key := range before {
			keys[key] = true
		}
		for key := range after {
			keys[key] = true
		}
		if section == "metadata" {
			for _, key := range []string{"resourceVersion", "generation", "managedFields"} {
				delete(keys, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !equality.Semantic.DeepEqual(before[key], after[key]) {
				changed = append(changed, section+"."+key)
			}
		}
	}
	return changed
}
