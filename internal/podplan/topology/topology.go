package topology

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// NodeAffinity returns the node affinity of a PersistentVolume of the topology, always the same for
// the same list; nil for all nodes.
func NodeAffinity(topology []pavv1.TopologyLabels) *corev1.VolumeNodeAffinity {
	if len(topology) == 0 {
		return nil
	}
	terms := make([]corev1.NodeSelectorTerm, len(topology))
	for i, labels := range topology {
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, in(key, labels[key]))
		}
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// mostAlternatives is how many alternatives the topology of a node affinity may have.
const mostAlternatives = 100

// OfAffinity returns the topology of the node affinity of a PersistentVolume, and whether it can be told: it can if all expressions have
// the operator In, some node could match, and there are not too many alternatives.
func OfAffinity(affinity *corev1.VolumeNodeAffinity) ([]pavv1.TopologyLabels, bool) {
	if affinity == nil || affinity.Required == nil {
		return nil, true
	}
	var topology []pavv1.TopologyLabels
	for _, term := range affinity.Required.NodeSelectorTerms {
		if len(term.MatchFields) > 0 || len(term.MatchExpressions) == 0 {
			return nil, false
		}
		alternatives := []pavv1.TopologyLabels{{}}
		for _, e := range term.MatchExpressions {
			if alternatives = withExpression(alternatives, e); len(alternatives) == 0 && e.Operator != corev1.NodeSelectorOpIn || len(topology)+len(alternatives) > mostAlternatives {
				return nil, false
			}
		}
		topology = append(topology, alternatives...)
	}
	return topology, len(topology) > 0
}

// withExpression returns the alternatives that also have a label with one of the values of an expression; none if it has another operator
// than In.
func withExpression(alternatives []pavv1.TopologyLabels, e corev1.NodeSelectorRequirement) []pavv1.TopologyLabels {
	if e.Operator != corev1.NodeSelectorOpIn {
		return nil
	}
	var longer []pavv1.TopologyLabels
	for _, labels := range alternatives {
		for _, value := range e.Values {
			if has, found := labels[e.Key]; found && has != value || len(longer) > mostAlternatives {
				continue
			}
			with := maps.Clone(labels)
			with[e.Key] = value
			longer = append(longer, with)
		}
	}
	return longer
}

// Matches reports whether a node with these labels is in the topology.
func Matches(topology []pavv1.TopologyLabels, node map[string]string) bool {
	has := func(labels pavv1.TopologyLabels) bool {
		for key, value := range labels {
			if got, ok := node[key]; !ok || got != value {
				return false
			}
		}
		return true
	}
	return len(topology) == 0 || slices.ContainsFunc(topology, has)
}

// Overlaps reports whether some node could be both in the topology and in the allowedTopologies of a StorageClass. A
// label that only one of the two has does not exclude that, as a node may have both labels.
func Overlaps(topology []pavv1.TopologyLabels, allowed []corev1.TopologySelectorTerm) bool {
	if len(topology) == 0 || len(allowed) == 0 {
		return true
	}
	for _, labels := range topology {
		if slices.ContainsFunc(allowed, func(term corev1.TopologySelectorTerm) bool { return compatible(labels, term) }) {
			return true
		}
	}
	return false
}

// Allows reports whether a node with these labels is in the allowedTopologies of a StorageClass. An empty list means
// all nodes; a term without expressions matches none.
func Allows(allowed []corev1.TopologySelectorTerm, node map[string]string) bool {
	return len(allowed) == 0 || slices.ContainsFunc(allowed, func(term corev1.TopologySelectorTerm) bool {
		return len(term.MatchLabelExpressions) > 0 && !slices.ContainsFunc(term.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			value, ok := node[e.Key]
			return !ok || !slices.Contains(e.Values, value)
		})
	})
}

func compatible(labels pavv1.TopologyLabels, term corev1.TopologySelectorTerm) bool {
	for _, requirement := range term.MatchLabelExpressions {
		if value, ok := labels[requirement.Key]; ok && !slices.Contains(requirement.Values, value) {
			return false
		}
	}
	// Kubernetes: a "null or empty topology selector term matches no objects".
	return len(term.MatchLabelExpressions) > 0
}

// NodeSelector returns the node selector of the allowedTopologies of a StorageClass; nil for all nodes.
func NodeSelector(allowed []corev1.TopologySelectorTerm) *corev1.NodeSelector {
	if len(allowed) == 0 {
		return nil
	}
	selector := &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, len(allowed))}
	for i, term := range allowed {
		for _, requirement := range term.MatchLabelExpressions {
			selector.NodeSelectorTerms[i].MatchExpressions = append(selector.NodeSelectorTerms[i].MatchExpressions,
				in(requirement.Key, requirement.Values...))
		}
	}
	return selector
}

// Both returns the node selector of the nodes that are both in the topology and in the allowedTopologies of a StorageClass; nil for all
// nodes. Some node could be in both, see Overlaps.
func Both(topology []pavv1.TopologyLabels, allowed []corev1.TopologySelectorTerm) *corev1.NodeSelector {
	affinity := NodeAffinity(topology)
	if affinity == nil {
		return NodeSelector(allowed)
	}
	if len(allowed) == 0 {
		return affinity.Required
	}
	selector := &corev1.NodeSelector{}
	for i, labels := range topology {
		for j, term := range allowed {
			if compatible(labels, term) {
				expressions := slices.Concat(affinity.Required.NodeSelectorTerms[i].MatchExpressions, NodeSelector(allowed).NodeSelectorTerms[j].MatchExpressions)
				selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: expressions})
			}
		}
	}
	return selector
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: slices.Clone(values)}
}

// Describe returns the topology in words, such as "rack=1,zone=a or zone=b": always the same for the
// same list, and cut off after 256 bytes.
func Describe(topology []pavv1.TopologyLabels) string {
	const enough = 256
	if len(topology) == 0 {
		return "all nodes"
	}
	words := make([]string, len(topology))
	for i, labels := range topology {
		words[i] = describeLabels(labels)
	}
	return shorten(strings.Join(words, " or "), enough)
}

func describeLabels(labels map[string]string) string {
	words := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
	}
	return strings.Join(words, ",")
}

// shorten returns the beginning of a text, of about so many bytes.
func shorten(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + "…"
}
