package doctor

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

// checkDefinitions checks the CustomResourceDefinitions, and whether they have the fields that this plugin knows.
func checkDefinitions(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(getDefinitions); rows != nil {
		return rows, ""
	}
	if len(f.Definitions) == 0 {
		return []Row{problem("PaV is not installed: there are no CustomResourceDefinitions of it",
			status.Step{Text: "install it", Command: "kubectl create -f deployment.yaml"})}, ""
	}
	for _, kind := range kinds {
		if row := checkDefinition(kind.plural+"."+pavv1.Group, f.Definitions[kind.plural+"."+pavv1.Group], &kind); row != nil {
			rows = append(rows, *row)
		}
	}
	return rows, fmt.Sprintf("%d CustomResourceDefinitions are established, and have the fields of version %s", len(kinds), f.Version)
}

// checkDefinition returns what is wrong with a CustomResourceDefinition, or nil. It may not exist.
func checkDefinition(name string, definition *apiextensionsv1.CustomResourceDefinition, kind *kind) *Row {
	row := Row{Result: Problem, Next: []status.Step{reinstall()}}
	if definition == nil {
		row.Message = fmt.Sprintf("CustomResourceDefinition %s does not exist", name)
		return &row
	}
	see := status.Step{Text: "see its conditions", Command: "kubectl describe crd " + name}
	if definition.DeletionTimestamp != nil {
		row.Message = fmt.Sprintf("CustomResourceDefinition %s is being deleted, which waits for its objects", name)
		row.Next = []status.Step{see}
		return &row
	}
	for _, c := range definition.Status.Conditions {
		needed := c.Type == apiextensionsv1.Established || c.Type == apiextensionsv1.NamesAccepted
		if needed && c.Status != apiextensionsv1.ConditionTrue {
			row.Message, row.Next = fmt.Sprintf("CustomResourceDefinition %s is not served: %s", name, c.Message), []status.Step{see}
			return &row
		}
	}
	at := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == pavv1.GroupVersion.Version && v.Served
	})
	if at < 0 {
		row.Message = fmt.Sprintf("CustomResourceDefinition %s does not serve %s, the version of this plugin", name, pavv1.GroupVersion.Version)
		return &row
	}
	switch missing, more := compareFields(kind, &definition.Spec.Versions[at]); {
	case len(missing) > 0:
		row.Message = fmt.Sprintf("CustomResourceDefinition %s is older than this plugin: it does not have %s", name, listed(missing))
		row.Next = append(row.Next, step("or, if the agents are older as well, install the plugin of their version", "kubectl pav version"))
	case len(more) > 0:
		row.Message = fmt.Sprintf("CustomResourceDefinition %s is newer than this plugin, which does not know %s", name, listed(more))
		row.Next = []status.Step{{Text: "install the plugin of the agents' version", Command: "kubectl pav version"}}
	default:
		return nil
	}
	return &row
}
