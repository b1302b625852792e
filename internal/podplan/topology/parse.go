package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Parse returns the topology of an evaluated field: a list of mappings from node labels to values. nil means all
// nodes. Alternatives that repeat an earlier one are left out. Errors begin with the path of the wrong value, below
// that of the field.
func Parse(field string, value any) ([]pavv1.TopologyLabels, error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: must be a list of mappings of node labels to values, not %s", field, describe(value))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the list is empty, so that no node could use the volume; for all nodes, leave the field out", field)
	}
	topology := make([]pavv1.TopologyLabels, 0, len(list))
	seen := map[string]bool{}
	for i, item := range list {
		alternative, err := parseLabels(fmt.Sprintf("%s[%d]", field, i), item)
		if err != nil {
			return nil, err
		}
		// Labels contain no comma and no equals sign, so different ones have different texts.
		if words := describeLabels(alternative); !seen[words] {
			seen[words] = true
			topology = append(topology, alternative)
		}
	}
	return topology, nil
}

// longest is how many bytes of an invalid text an error has.
const longest = 128

func parseLabels(path string, value any) (pavv1.TopologyLabels, error) {
	given, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: must be a mapping of node labels to values, not %s", path, describe(value))
	}
	if len(given) == 0 {
		return nil, fmt.Errorf("%s: the mapping is empty; name at least one node label", path)
	}
	labels := make(pavv1.TopologyLabels, len(given))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("%s: %q is not a valid label name: %s", path, shorten(key, longest), strings.Join(problems, "; "))
		}
		text, ok := given[key].(string)
		if !ok {
			return nil, fmt.Errorf("%s[%s]: must be a string, not %s", path, key, describe(given[key]))
		}
		if problems := validation.IsValidLabelValue(text); len(problems) > 0 {
			return nil, fmt.Errorf("%s[%s]: %q is not a valid label value: %s", path, key, shorten(text, longest), strings.Join(problems, "; "))
		}
		labels[key] = text
	}
	return labels, nil
}

func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the boolean %t: quote it", v)
	case int64, float64:
		return fmt.Sprintf("the number %v: quote it", v)
	case string:
		return "a string; a template that is to yield one must {% set yaml = true %}"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprintf("a %T", value)
	}
}
