package kubelet

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Journal records the runs of pods, in the order in which they began.
type Journal struct {
	mu      sync.Mutex
	entries []Entry
}

// Entry is one run of a pod's script.
type Entry struct {
	// Workflow is the workflow of the pod.
	Workflow string

	// Handle is the handle of the pod's volume.
	Handle string

	// Pod is the pod's UID.
	Pod types.UID
}

func (j *Journal) add(entry Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

// Of returns the runs of the pods of a volume, or of all volumes if handle is empty.
func (j *Journal) Of(handle string) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.entries), func(entry Entry) bool { return handle != "" && entry.Handle != handle })
}

// Runs returns how often pods of each workflow ran for a volume, or for all volumes if handle is empty.
func (j *Journal) Runs(handle string) map[string]int {
	runs := map[string]int{}
	for _, entry := range j.Of(handle) {
		runs[entry.Workflow]++
	}
	return runs
}
