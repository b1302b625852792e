package template

import (
	"slices"
	"strings"
	"sync"

	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

const (
	functionGetPVC = "get_pvc"
	returnedClaim  = "get_pvc()"
)

// names are what the templates of a section can use.
type names struct {
	section string
	vars    []Variable
}

func newNames(section string) *names {
	vars, _ := Context(section)
	return &names{section, vars}
}

func (n *names) question() jinja.Question {
	q := jinja.Question{
		Names: map[string]bool{functionGetPVC: true}, Objects: map[string]bool{},
		Functions: map[string]bool{functionGetPVC: true}, Words: map[string]bool{"tobash": true},
		Booleans: map[string]bool{"yaml": true},
	}
	for _, v := range n.vars {
		q.Names[v.Name] = true
		q.Objects[v.Name] = isObject(v.Type) || v.isOfTenant()
	}
	return q
}

func isObject(kind string) bool {
	switch kind {
	case typeClaim, typeClass, typeVolume, typeNode, typeSnapshot, typeSnapshotContent, typeSnapshotClass:
		return true
	default:
		return isOfBucket(kind) || HasKnownKeys(kind)
	}
}

// isOfBucket reports whether variables of a type are objects of buckets.
func isOfBucket(kind string) bool {
	switch kind {
	case typeBucketClaim, typeBucketClass, typeAccess, typeAccessClass, typeNamespace:
		return true
	default:
		return false
	}
}

// HasKnownKeys reports whether variables of a type are mappings that PaV makes, so that all of their keys are known.
func HasKnownKeys(kind string) bool {
	switch kind {
	case TypeSource, TypeQuota, TypeServiceAccount, TypeRotation, TypeBucketVolume:
		return true
	default:
		return false
	}
}

// isOfTenant reports whether a tenant chooses the value of a variable, or a part of it.
func (v Variable) isOfTenant() bool { return v.Trust == TrustTenant || v.Trust == TrustName }

func (n *names) variable(name string) (Variable, bool) {
	if name == returnedClaim {
		return Variable{Name: name, Type: typeClaim, Trust: TrustTenant}, true
	}
	i := slices.IndexFunc(n.vars, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return Variable{}, false
	}
	return n.vars[i], true
}

// unknown is the message about an undefined name.
func (n *names) unknown(u jinja.Unknown) *jinja.Error {
	found := &jinja.Error{Kind: py.UndefinedUse, Line: u.Line, Column: u.Column, Message: "'" + u.Name + "' is not known here"}
	elsewhere := sectionsWith(u.Name)
	if len(elsewhere) > 0 {
		found.Message += "; it is known in " + enumerate(elsewhere)
	}
	if similar := n.counterpart(u.Name); similar != "" && len(elsewhere) > 0 {
		found.Message += "; did you mean '" + similar + "'?"
	} else {
		found.Message += u.Hint
	}
	return found
}

// sectionsWith returns the sections whose templates can use a name. It must not be changed.
func sectionsWith(name string) []string { return sectionsByName()[name] }

var sectionsByName = sync.OnceValue(func() map[string][]string {
	byName := map[string][]string{}
	for _, section := range sections {
		vars, _ := Context(section)
		for _, v := range vars {
			byName[v.Name] = append(byName[v.Name], section)
		}
	}
	return byName
})

func enumerate(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// counterpart returns a name of this section that is the end of the name of another section, or the reverse:
// selectedNode for node, capacity for requestedMinCapacity.
func (n *names) counterpart(name string) string {
	nearest, lower := "", strings.ToLower(name)
	for _, v := range n.vars {
		own := strings.ToLower(v.Name)
		related := strings.HasSuffix(own, lower) || strings.HasSuffix(lower, own)
		if related && (nearest == "" || len(own) < len(nearest)) {
			nearest = v.Name
		}
	}
	return nearest
}

func (n *names) path(p jinja.Path) Path {
	v, _ := n.variable(p.Root)
	return Path{Root: p.Root, Type: v.Type, Keys: p.Keys, Line: p.Line, Column: p.Column, Guarded: p.Guarded, Tested: p.Tested}
}

func (n *names) chosenByTenant(root string) bool {
	v, ok := n.variable(root)
	return ok && v.isOfTenant()
}

func (n *names) flow(f jinja.Flow) Flow {
	v, _ := n.variable(f.Root)
	return Flow{
		Source: strings.Join(append([]string{f.Root}, f.Keys...), "."), Keys: f.Keys,
		Line: f.Line, Column: f.Column, Shell: f.Word, Safe: v.isSafe(f.Keys),
	}
}

// safeMetadata are the fields of any object whose values cannot have characters with a meaning in a shell: names of Kubernetes, and
// fields that only the cluster writes.
var safeMetadata = [][]string{
	{"apiVersion"}, {"kind"},
	{"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"},
	{"metadata", "resourceVersion"}, {"metadata", "generation"},
}

// safeKeys are further such fields of a PersistentVolumeClaim: names, enumerations, quantities, and fields that only the cluster writes.
// The APIs of buckets accept any text in theirs.
var safeKeys = [][]string{
	{"spec", "volumeMode"}, {"spec", "accessModes"}, {"spec", "storageClassName"}, {"spec", "volumeName"}, {"spec", "resources"},
	{"status"},
}

// isSafe reports whether a part of a variable that a tenant chooses cannot have characters with a meaning in a shell.
func (v Variable) isSafe(keys []string) bool {
	begins := func(safe []string) bool { return len(keys) >= len(safe) && slices.Equal(keys[:len(safe)], safe) }
	switch {
	case v.Trust == TrustName:
		return true
	case !isObject(v.Type):
		return false // such as a mapping with keys of the tenant
	default:
		return slices.ContainsFunc(safeMetadata, begins) || !isOfBucket(v.Type) && slices.ContainsFunc(safeKeys, begins)
	}
}
