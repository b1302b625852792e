package source

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxExpanded is how many bytes a document's scalars may have once each alias is replaced with what it stands
// for, as kubectl does: a few lines can stand for more than there is memory.
const maxExpanded = 64 << 20

// expandedSize returns about how many bytes a document has once its aliases are replaced; root is nil if
// its parts cannot be told apart.
func expandedSize(c chunk, root *yaml.Node) int64 {
	if root == nil {
		return int64(len(c.text)) * int64(strings.Count(c.text, "*"))
	}
	return sizes{}.of(root)
}

// sizes has the sizes of nodes with an anchor, so that each is measured once.
type sizes map[*yaml.Node]int64

func (s sizes) of(node *yaml.Node) int64 {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Anchor == "" {
		return s.measure(node)
	}
	size, known := s[node]
	if !known {
		s[node] = 0 // one that contains itself is refused by the parser later
		size = s.measure(node)
		s[node] = size
	}
	return size
}

// measure adds up to a little more than what is refused.
func (s sizes) measure(node *yaml.Node) int64 {
	size := int64(len(node.Value)) + 1
	for _, child := range node.Content {
		if size += s.of(child); size > maxExpanded {
			break
		}
	}
	return min(size, maxExpanded+1)
}
