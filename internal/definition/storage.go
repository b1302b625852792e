package definition

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var (
	// writesHandle matches a script that mentions /pav/handle.
	writesHandle = regexp.MustCompile(`/pav/handle\b`)

	// ofThisClaim matches expressions that are unique to the volume of one claim.
	ofThisClaim = regexp.MustCompile(`\bdefaultHandle\b|\buid\b|\buuid|\bmktemp\b`)
)

// ownHandle warns of a creation pod that may write the same handle for two claims.
func (c *check) ownHandle(spec map[string]any) {
	section := node{"spec", spec}.key("volumeCreation")
	pod := section.key("podTemplate")
	if section.key("handle").value != nil {
		return // this field has precedence over what the pod writes
	}
	writes, own := "", false
	eachText(pod, maxDepth, func(n node, text string) {
		if writes == "" && writesHandle.MatchString(text) {
			writes = n.field
		}
		own = own || ofThisClaim.MatchString(text)
	})
	if writes == "" || own {
		return
	}
	c.warnf(writes, "writes /pav/handle, but the pod template has neither defaultHandle nor pvc.metadata.uid: if two claims get the same handle, the second is refused; "+
		"use one of them in the handle, unless the storage system gives each volume a unique identifier")
}

// eachText calls a function for each string in plain data.
func eachText(n node, depth int, visit func(node, string)) {
	if depth == 0 {
		return
	}
	switch v := n.value.(type) {
	case string:
		visit(n, v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachText(n.key(key), depth-1, visit)
		}
	case []any:
		for _, item := range n.items() {
			eachText(item, depth-1, visit)
		}
	}
}

// sharedModes warns of access modes that mean something else together than each alone.
func (c *check) sharedModes(spec map[string]any) {
	field := node{"spec", spec}.key("volumeValidation").key("accessModes")
	offered := map[string]bool{}
	for _, item := range field.items() {
		text, isPlain := item.text()
		if !isPlain {
			return // whatever it may be
		}
		offered[strings.TrimSpace(text)] = true
	}
	once := offered[string(corev1.ReadWriteOnce)] || offered[string(corev1.ReadWriteOncePod)]
	if once && offered[string(corev1.ReadOnlyMany)] && !offered[string(corev1.ReadWriteMany)] {
		c.warnf(field.field, "a claim can ask for both ReadWriteOnce and ReadOnlyMany, and its volume is then staged on several nodes at the same time, with readOnly false on each: "+
			"a volume is limited to one node only if ReadWriteOnce is its only access mode; remove one of the two, refuse claims with both in a validation pod, or make sure that staging on several nodes does no harm")
	}
}
