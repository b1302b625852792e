package definition

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/albertofaria/pav/internal/template"
)

// sources checks that the templates of a definition copy what volumes are created from.
func (c *check) sources(spec map[string]any) {
	creation := node{"spec", spec}.key("volumeCreation")
	if creation.key("fromBucket").value == true {
		return // no volume has a source
	}
	kinds := creation.key("dataSources")
	for _, twice := range repeated(kinds) {
		c.errorf(twice.field, "is there twice")
	}
	if grows := (node{"spec", spec}).key("volumeStaging").key("growsVolumes"); kinds.isKnownList() && len(kinds.items()) > 0 && grows.value == nil {
		c.warnf(grows.field, "is missing, though volumes can have data sources: a claim may request more than its source has; "+
			"set it to true if staging pods grow a file system to the size of its device, or there is nothing to grow, as in a directory; else to false")
	}
	pod := creation.key("podTemplate")
	switch {
	case !kinds.isKnownList():
	case len(kinds.items()) == 0:
		c.withoutSources(creation)
	case pod.value == nil:
		c.errorf(pod.field, "is missing, though volumes can have data sources: only a creation pod can copy the data; add it, or leave dataSources out")
	case !c.copiesSource(creation):
		c.errorf(pod.field, "does not mention the variable source, so that a volume that is to have the data of a snapshot or another volume would be empty: "+
			"where source is not none, copy the data of {{ source.handle }}; or leave dataSources out")
	}
}

// withoutSources warns of what has no effect in a definition whose volumes are all created empty.
func (c *check) withoutSources(creation node) {
	if depends := creation.key("dependsOnSource"); depends.value == true {
		c.warnf(depends.field, "has no effect without dataSources, as all volumes are created empty")
	}
	for _, field := range slices.Sorted(maps.Keys(c.analyses)) {
		read, found := c.readsSource(field)
		if !found || read.Assigned {
			continue
		}
		c.add(Finding{
			Severity: Warning, Field: field, Line: read.Line, Column: read.Column,
			Message: "source is always none, as spec.volumeCreation.dataSources is missing: list VolumeSnapshot, PersistentVolumeClaim or both there, or remove this",
		})
	}
}

// copiesSource reports whether the creation pod may copy the data of a source, which it knows from its own template or, in another
// workflow, from the handle. It is false only if that is certain.
func (c *check) copiesSource(creation node) bool {
	if c.late || c.full() {
		return true
	}
	pod, handle := creation.key("podTemplate").field, creation.key("handle").field
	for field, analysis := range c.analyses {
		if field != handle && !strings.HasPrefix(field, pod) {
			continue
		}
		if _, reads := c.readsSource(field); reads || len(analysis.Errors) > 0 {
			return true
		}
	}
	return false
}

// readsSource returns the first place at which a template reads the variable source.
func (c *check) readsSource(field string) (template.Read, bool) {
	var places []template.Read
	for _, read := range c.analyses[field].Reads {
		if read.Name == "source" {
			places = append(places, read)
		}
	}
	if len(places) == 0 {
		return template.Read{}, false
	}
	return slices.MinFunc(places, func(a, b template.Read) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) }), true
}
