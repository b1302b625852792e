package yaml11

// form is what sort of node a node is.
type form int

const (
	scalarNode form = iota
	sequenceNode
	mappingNode
)

func (f form) String() string {
	return [...]string{scalarNode: "a scalar", sequenceNode: "a list", mappingNode: "a mapping"}[f]
}

// node is a part of a text before it becomes a value. Aliases are the very node that they stand for.
type node struct {
	form form
	mark mark
	tag  string

	// text is a scalar's.
	text string

	// items are those of a list, or the keys of a mapping, each followed by its value.
	items []*node

	// busy says that a value is being made of the node, which must not be a part of itself.
	busy bool
}

// The tags that a text need not write.
const (
	tagNamespace = "tag:yaml.org,2002:"
	nullTag      = tagNamespace + "null"
	boolTag      = tagNamespace + "bool"
	intTag       = tagNamespace + "int"
	floatTag     = tagNamespace + "float"
	timestampTag = tagNamespace + "timestamp"
	mergeTag     = tagNamespace + "merge"
	valueTag     = tagNamespace + "value"
	stringTag    = tagNamespace + "str"
	sequenceTag  = tagNamespace + "seq"
	mappingTag   = tagNamespace + "map"
)

// The tags that it must write.
const (
	binaryTag = tagNamespace + "binary"
	setTag    = tagNamespace + "set"
	omapTag   = tagNamespace + "omap"
	pairsTag  = tagNamespace + "pairs"
)
