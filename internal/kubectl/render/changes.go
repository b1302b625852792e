package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	// maxGroups is the maximum number of differences of a phase that are shown, and maxNamed that of volumes that are
	// named for one of them.
	maxGroups = 20
	maxNamed  = 10
)

// change is how a phase of one volume differs between two definitions.
type change struct {
	phase         string
	before, after *Phase

	// err is why the new definition, or the volume, cannot be rendered; nil if it can.
	err error
}

// changesOf returns the phases that two definitions render differently for a volume, and those that the new definition
// cannot render.
func changesOf(before, after *rendering) []change {
	var changes []change
	for _, phase := range phases {
		old, err := before.outcome(phase)
		if err != nil {
			// The agents refuse what they cannot render. The edit may be the remedy.
			old = &Phase{Phase: phase, Refusal: err.Error()}
		}
		c := change{phase: phase, before: old}
		if c.after, c.err = after.outcome(phase); c.err != nil || !equality.Semantic.DeepEqual(c.before, c.after) {
			changes = append(changes, c)
		}
	}
	return changes
}

// what says in words how a phase changes.
func (c change) what() string {
	had, has := c.before != nil && c.before.Pod != nil, c.after != nil && c.after.Pod != nil
	refused, refuses := c.before != nil && c.before.Refusal != "", c.after != nil && c.after.Refusal != ""
	switch {
	case c.err != nil && c.phase == "":
		return "it cannot be read"
	case c.err != nil:
		return c.phase + " cannot be rendered"
	case refuses && !refused:
		return c.phase + " is refused"
	case refused && !refuses:
		return c.phase + " is not refused any more"
	case has && !had:
		return fmt.Sprintf("there is a %s pod now", c.phase)
	case had && !has:
		return fmt.Sprintf("there is no %s pod any more", c.phase)
	case had && has && !equality.Semantic.DeepEqual(c.before.Pod, c.after.Pod):
		return fmt.Sprintf("the %s pod changes", c.phase)
	default:
		return c.phase + " changes"
	}
}

// effects say when a change of a phase takes effect, as the agents evaluate definitions.
var effects = map[string]string{
	validation: "for volumes that are created from now on, and static ones the next time they are staged",
	creation:   "only for volumes that are created from now on, and those that are not created yet with their next attempt",
	deletion:   "at once, with the next deletion pod",
	staging:    "the next time a volume is staged on a node",
	unstaging:  "at once, with the next unstaging pod, also where a volume is staged already",
}

// group has the volumes for which a phase changes in the same way.
type group struct {
	// change is that of the first volume.
	change

	// volumes are the first of the volumes, and count is how many there are.
	volumes []*existing
	count   int
}

// tally counts one kind of change of a phase.
type tally struct {
	phase, what string
	count       int
	failed      bool
}

// report has how all volumes change. Its size depends on the number of kinds of changes, not on that of the volumes.
type report struct {
	total   int
	tallies []*tally
	groups  []*group

	byKey map[string]*group
	// more counts, by phase, the volumes whose changes are like none that is kept.
	more map[string]int
}

// add adds a volume with its changes.
func (r *report) add(v *existing, changes []change) error {
	r.total++
	for _, c := range changes {
		r.count(c)
		keys, err := keysOf(c, v)
		if err != nil {
			return err
		}
		r.assign(keys, c, v)
	}
	return nil
}

func (r *report) count(c change) {
	i := slices.IndexFunc(r.tallies, func(t *tally) bool { return t.phase == c.phase && t.what == c.what() })
	if i < 0 {
		i = len(r.tallies)
		r.tallies = append(r.tallies, &tally{phase: c.phase, what: c.what(), failed: c.err != nil})
	}
	r.tallies[i].count++
}

// assign adds a volume to the group that has one of the keys of its change, or to a new group.
func (r *report) assign(keys []string, c change, v *existing) {
	var g *group
	for _, key := range keys {
		if g = r.byKey[key]; g != nil {
			break
		}
	}
	if g == nil {
		if r.byKey == nil {
			r.byKey, r.more = map[string]*group{}, map[string]int{}
		}
		if r.kept(c.phase) == maxGroups {
			r.more[c.phase]++
			return
		}
		g = &group{change: c}
		r.groups = append(r.groups, g)
		for _, key := range keys {
			r.byKey[key] = g
		}
	}
	if g.count++; g.count <= maxNamed {
		g.volumes = append(g.volumes, &existing{claim: v.claim, name: v.name})
	}
}

// kept returns the number of groups of a phase.
func (r *report) kept(phase string) int {
	kept := 0
	for _, g := range r.groups {
		if g.phase == phase {
			kept++
		}
	}
	return kept
}

// sorted returns the tallies and the groups in the order of a volume's life.
func (r *report) sorted() ([]*tally, []*group) {
	order := func(a, b string) int { return slices.Index(phases, a) - slices.Index(phases, b) }
	slices.SortStableFunc(r.tallies, func(a, b *tally) int { return order(a.phase, b.phase) })
	slices.SortStableFunc(r.groups, func(a, b *group) int { return order(a.phase, b.phase) })
	return r.tallies, r.groups
}

// failed reports whether something cannot be rendered.
func (r *report) failed() bool {
	return slices.ContainsFunc(r.tallies, func(t *tally) bool { return t.failed })
}

// keysOf returns two texts, either of which is the same for volumes with the same change: the lines that differ, as they
// are, and with placeholders for the names and identifiers of the volume itself.
func keysOf(c change, v *existing) ([]string, error) {
	var lines strings.Builder
	lines.WriteString(c.phase + "\n")
	if c.err != nil {
		lines.WriteString(c.err.Error())
	} else {
		text, err := unified(c.phase, c.before, c.after)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
				lines.WriteString(line)
			}
		}
	}
	return []string{lines.String(), masked(lines.String(), v.own(c))}, nil
}

// own returns the names and identifiers of a volume and of the pods of its phase.
func (v *existing) own(c change) []string {
	namespace, claim, _ := strings.Cut(v.claim, "/")
	own := []string{
		v.name, claim, namespace, text(v.request, "metadata", "uid"), text(v.staging.Claim, "metadata", "uid"),
		text(v.staging.Volume, "spec", "csi", "volumeHandle"), text(v.staging.Volume, "metadata", "uid"),
		text(v.node, "metadata", "name"), text(v.staging.Node, "metadata", "name"),
	}
	for _, phase := range []*Phase{c.before, c.after} {
		if phase == nil || phase.Pod == nil {
			own = append(own, make([]string, 5)...) // so that the places of others stay the same
			continue
		}
		labels, annotations := mapAt(phase.Pod, "labels"), mapAt(phase.Pod, "annotations")
		own = append(own, text(phase.Pod, "metadata", "name"),
			labels[pavv1.VolumeLabel], labels[pavv1.StageLabel], labels[pavv1.NodeLabel], annotations[pavv1.NodeAnnotation])
	}
	if v.record != nil {
		own = append(own, string(v.record.UID), v.record.Status.Handle)
	}
	if v.stage != nil {
		own = append(own, string(v.stage.UID))
	}
	return own
}

func mapAt(pod map[string]any, field string) map[string]string {
	metadata, _ := pod["metadata"].(map[string]any)
	values, _ := metadata[field].(map[string]any)
	found := map[string]string{}
	for key, value := range values {
		found[key], _ = value.(string)
	}
	return found
}

// masked replaces words of a text by characters that stand for their indexes, the longest first. Shorter words than three
// characters could mean anything.
func masked(text string, words []string) string {
	const firstPrivate = '\ue000'
	places := map[string]int{}
	for i, word := range words {
		if _, known := places[word]; len(word) > 2 && !known {
			places[word] = i
		}
	}
	longest := slices.SortedFunc(maps.Keys(places), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for _, word := range longest {
		text = replaceWord(text, word, string(firstPrivate+rune(places[word])))
	}
	return text
}

// replaceWord replaces a word where no letter or digit is next to it.
func replaceWord(text, word, by string) string {
	var out strings.Builder
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			out.WriteString(text[from:])
			return out.String()
		}
		at += from
		end := at + len(word)
		if at > 0 && isWordByte(text[at-1]) || end < len(text) && isWordByte(text[end]) {
			out.WriteString(text[from : at+1])
			from = at + 1
			continue
		}
		out.WriteString(text[from:at] + by)
		from = end
	}
}

func isWordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
