package source

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxExpanded is the maximum size of a document's scalars in bytes after aliases are replaced, as kubectl does: a few
// lines can expand to more than the memory.
const maxExpanded = 64 << 20

// expandedSize returns the approximate size of a document in bytes after its aliases are replaced; root is nil if the
// document cannot be parsed into nodes.
func expandedSize(c chunk, root *yaml.Node) int64 {
	if root == nil {
		return int64(len(c.text)) * int64(strings.Count(c.text, "*"))
	}
	return sizes{}.of(root)
}

// sizes are the sizes of nodes with an anchor, so that each is measured once.
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
		s[node] = 0 // the parser refuses a node that contains itself later
		size = s.measure(node)
		s[node] = size
	}
	return size
}

// measure stops adding a little above the limit.
func (s sizes) measure(node *yaml.Node) int64 {
	size := int64(len(node.Value)) + 1
	for _, child := range node.Content {
		if size += s.of(child); size > maxExpanded {
			break
		}
	}
	return min(size, maxExpanded+1)
}
