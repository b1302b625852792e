package status

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// eventEntries returns the entries about events, with one entry for each cause: events that were repeated, that are
// about several objects, or that differ only in numbers and pod names are one entry.
func eventEntries(f *Facts) []Entry {
	var groups []*group
	byKey := map[string]*group{}
	events := slices.Clone(f.Events)
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Compare(place(a.InvolvedObject.Kind), place(b.InvolvedObject.Kind))
	})
	for i := range events {
		e := &events[i]
		if !isNews(f, e) {
			continue
		}
		e.Message = strings.TrimPrefix(e.Message, "(combined from similar events): ") // client-go's prefix for aggregated events
		key := e.Reason + " " + normal(e.Message)
		g := byKey[key]
		if g == nil {
			g = newGroup(f, e)
			byKey[key] = g
			groups = append(groups, g)
		}
		g.add(e)
	}
	all := make([]Entry, 0, len(groups))
	for _, g := range groups {
		for _, count := range g.counts {
			g.entry.Count = max(g.entry.Count, count)
		}
		if g.entry.Count == 1 {
			g.entry.Count, g.entry.First = 0, nil
		}
		all = append(all, g.entry)
	}
	return all
}

// group are the events with one cause.
type group struct {
	entry  Entry
	counts map[string]int // by object
	said   time.Time      // the time of the message
}

func newGroup(f *Facts, e *corev1.Event) *group {
	first, last := times(e)
	g := &group{entry: Entry{Time: last, First: &first, Object: objectOf(f, e), rank: rankEvent}, counts: map[string]int{}}
	if e.Type == corev1.EventTypeWarning && !isOvercome(f, e, last.Time) {
		g.entry.State = Failing
	}
	if e.Reason == "FailedScheduling" {
		g.entry.rank = rankClient // the pod was not scheduled yet
	}
	return g
}

func (g *group) add(e *corev1.Event) {
	first, last := times(e)
	g.counts[string(e.InvolvedObject.UID)+e.InvolvedObject.Name] += max(countOf(e), 1)
	if g.said.IsZero() || last.After(g.said) {
		g.said, g.entry.What = last.Time, e.Reason+": "+firstLine(Brief(e.Message))
	}
	if first.Before(g.entry.First) {
		g.entry.First = &first
	}
	if g.entry.Time.Before(&last) {
		g.entry.Time = last
	}
}

// place orders the objects of one entry: the entry names the first.
func place(kind string) int {
	return slices.Index([]string{"PersistentVolumeClaim", "Pod", "PersistentVolume", "PavVolume", "PavStage", "VolumeSnapshot", "VolumeSnapshotContent", "PavSnapshot",
		"ObjectBucketClaim", "BucketClaim", "BucketAccess", "PavBucket", "PavBucketAccess"}, kind)
}

// routine are events whose content the timeline already has from the objects.
var routine = map[string]bool{
	"Scheduled": true, "Created": true, "Started": true, "Pulled": true, "Pulling": true, "Killing": true,
	"ExternalProvisioning": true, protocol.Provisioning: true, protocol.ProvisioningSucceeded: true,
}

// foreign are warnings that have nothing to do with volumes.
var foreign = map[string]bool{"MissingClusterDNS": true, "DNSConfigForming": true, "CheckLimitsForResolvConf": true}

// isOvercome reports whether a warning about a client pod is outdated, because the pod has started since.
func isOvercome(f *Facts, e *corev1.Event, at time.Time) bool {
	for i := range f.Clients {
		if since := began(&f.Clients[i]); f.Clients[i].UID == e.InvolvedObject.UID && !since.IsZero() && !at.After(since.Time) {
			return true
		}
	}
	return false
}

// isFirstTry reports whether an event only says that the scheduler tried a pod before its claim was bound.
func isFirstTry(e *corev1.Event) bool {
	return e.Reason == "FailedScheduling" && strings.Contains(e.Message, "unbound immediate PersistentVolumeClaims")
}

// isEcho reports whether an event of kubelet only repeats what PaV's own event on the claim says.
func isEcho(f *Facts, e *corev1.Event) bool {
	_, words, ok := strings.Cut(e.Message, " desc = ")
	if !ok || e.InvolvedObject.Kind != "Pod" {
		return false
	}
	if _, failure, ok := strings.Cut(words, `": `); ok {
		words = failure // without its prefix, such as the name of the provisioner
	}
	words = normal(Brief(words))
	for i := range f.Events {
		if other := &f.Events[i]; other.InvolvedObject.Kind == "PersistentVolumeClaim" && strings.Contains(normal(other.Message), words) {
			return true
		}
	}
	return false
}

// isNews reports whether an event says something that the timeline does not have from another source.
func isNews(f *Facts, e *corev1.Event) bool {
	switch {
	case f.Bucket != nil && e.Reason == protocol.AccessGrantedEvent:
		return f.Bucket.Own == nil && len(f.Bucket.Accesses) == 0 // else the record tells
	case foreign[e.Reason], isFirstTry(e), isEcho(f, e):
		return false
	case e.Type == corev1.EventTypeWarning:
		return true
	case e.Reason == "Pulled":
		// An image that was already present is not worth an entry; the duration of a download is.
		return strings.HasPrefix(e.Message, "Successfully pulled")
	case e.Reason == protocol.ProvisioningSucceeded, e.Reason == protocol.Provisioning:
		// Waiting has the same reason as the beginning.
		return f.Volume == nil || strings.HasPrefix(e.Message, "waiting") || strings.HasPrefix(e.Message, "the volume cannot")
	}
	return !routine[e.Reason]
}

func times(e *corev1.Event) (first, last metav1.Time) {
	first, last = e.FirstTimestamp, e.LastTimestamp
	if first.IsZero() {
		first = metav1.NewTime(e.EventTime.Time)
	}
	if e.Series != nil {
		last = metav1.NewTime(e.Series.LastObservedTime.Time)
	}
	if last.IsZero() {
		last = first
	}
	if first.IsZero() {
		first, last = e.CreationTimestamp, e.CreationTimestamp
	}
	return first, last
}

func countOf(e *corev1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return int(e.Count)
}

// objectOf returns the object of an event, named as in the other entries.
func objectOf(f *Facts, e *corev1.Event) string {
	switch e.InvolvedObject.Kind {
	case "PersistentVolumeClaim":
		return "claim"
	case "PersistentVolume":
		return "pv"
	case "PavVolume":
		return "volume"
	case "VolumeSnapshot":
		return "snapshot"
	case "VolumeSnapshotContent":
		return "content"
	case "ObjectBucketClaim", "BucketClaim":
		return "claim"
	case "BucketAccess":
		return "access"
	case "PavBucket":
		return "bucket"
	case "PavBucketAccess":
		return f.nameOfAccess(e.InvolvedObject.Name)
	case "PavStage":
		for i := range f.Stages {
			if f.Stages[i].Name == e.InvolvedObject.Name {
				return "node " + f.Stages[i].Spec.NodeName
			}
		}
	case "Pod":
		return "pod " + e.InvolvedObject.Name
	}
	return strings.ToLower(e.InvolvedObject.Kind) + " " + e.InvolvedObject.Name
}

var (
	hashes  = regexp.MustCompile(`\b(` + strings.Join(append(pavv1.WorkflowsOfController(), pavv1.WorkflowStaging, pavv1.WorkflowNodeExpansion, pavv1.WorkflowUnstaging), "|") + `)-[0-9a-f]{20}\b`)
	numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
)

// normal returns a message without the parts that differ each time.
func normal(message string) string {
	return numbers.ReplaceAllString(hashes.ReplaceAllString(message, "$1"), "#")
}

// Brief returns a failure's message without the command at its end, which the report shows separately.
func Brief(message string) string {
	if i := strings.Index(message, "; see kubectl "); i >= 0 {
		rest := message[i+2:]
		// Text after the command, such as the time of the next attempt, stays.
		if j := strings.Index(rest, "; "); j >= 0 {
			return message[:i] + rest[j:]
		}
		return message[:i]
	}
	return message
}

func firstLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, " | ")
}
