package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/albertofaria/pav/internal/template"
)

// groups are the workflows of a definition. The templates of the workflows in one group have the same variables.
var groups = [][]string{
	{"volumeValidation"},
	{"volumeCreation"},
	{"volumeExpansion"},
	{"volumeModification"},
	{"volumeDeletion"},
	{"snapshotCreation", "snapshotDeletion"},
	{"volumeStaging", "volumeUnstaging"},
	{template.NodeExpansion},
	{"bucketValidation", "bucketCreation"},
	{"bucketUpdate"},
	{"bucketDeletion"},
	{"bucketAccessGrant"},
	{"bucketAccessRevoke"},
}

func writeVariables(w *bytes.Buffer) error {
	fmt.Fprint(w, "\n## Variables of templates\n\nEverywhere, `get_pvc(name, namespace)` is the claim of that name; it fails if there is none.\n")
	for _, sections := range groups {
		variables, ok := template.Context(sections[0])
		if !ok {
			return fmt.Errorf("there is no section %s", sections[0])
		}
		for _, other := range sections[1:] {
			if same, _ := template.Context(other); !reflect.DeepEqual(same, variables) {
				return fmt.Errorf("the variables of %s and %s are no longer the same", sections[0], other)
			}
		}
		fmt.Fprintf(w, "\n### In `%s`\n\n| variable | type | |\n|---|---|---|\n", strings.Join(sections, "` and `"))
		for _, v := range variables {
			doc := v.Doc
			if v.Optional != "" {
				doc += " " + strings.ToUpper(v.Optional[:1]) + v.Optional[1:] + "."
			}
			if v.Trust == template.TrustTenant {
				doc += " Its content is chosen by tenants."
			}
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", v.Name, v.Type, cell(doc))
		}
	}
	return nil
}
