package kubelet

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Journal is what pods did, in the order in which they began.
type Journal struct {
	mu      sync.Mutex
	entries []Entry
}

// Entry is one run of a pod's script.
type Entry struct {
	// Workflow is the pod's.
	Workflow string

	// Handle is that of the volume that the pod was for.
	Handle string

	// Pod is the pod's UID.
	Pod types.UID
}

func (j *Journal) add(entry Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

// Of returns what the pods of a volume did, or of all volumes where no handle is given.
func (j *Journal) Of(handle string) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.entries), func(entry Entry) bool { return handle != "" && entry.Handle != handle })
}

// Runs returns how often pods of each workflow ran for a volume, or for all.
func (j *Journal) Runs(handle string) map[string]int {
	runs := map[string]int{}
	for _, entry := range j.Of(handle) {
		runs[entry.Workflow]++
	}
	return runs
}
