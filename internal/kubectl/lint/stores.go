package lint

import (
	"fmt"
	"strings"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/source"
)

// storeField says in which store the buckets of a definition are.
const storeField = "spec.bucketValidation.store"

// sharedStores returns a warning about each PavProvisioner whose store is that of another one. What templates yield is not known: the same
// text may be different stores.
func sharedStores(provisioners []source.Document) []Finding {
	var findings []Finding
	first := map[string]string{}
	for _, d := range provisioners {
		spec, _ := d.Object["spec"].(map[string]any)
		validation, _ := spec["bucketValidation"].(map[string]any)
		store, _ := validation["store"].(string)
		if store == "" || strings.Contains(store, "{{") || strings.Contains(store, "{%") {
			continue
		}
		other, known := first[store]
		switch {
		case !known:
			first[store] = d.Name()
		case other != d.Name():
			findings = append(findings, At(d, definition.Finding{Severity: definition.Warning, Field: storeField, Message: fmt.Sprintf(
				"is that of PavProvisioner %q, too; buckets are compared within a PavProvisioner only, so that for a bucket that both serve, each writes policies without the other's accounts: let one PavProvisioner serve a store, with several classes", other)}))
		}
	}
	return findings
}
