package template

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
)

// seedOf returns the seed of random choices. It follows from the UIDs of the objects among the variables, and from handles: two
// volumes, buckets or accounts get different choices, and each evaluation for one of them gets the same. The agents rely on that: they evaluate a
// definition again before they create a pod, and the webhook evaluates it once more. A Namespace does not count: it may be gone by then.
func seedOf(vars Variables) uint64 {
	h := fnv.New64a()
	add := func(text string) {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(text)))
		_, _ = h.Write([]byte(text))
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		switch value := vars[name].(type) {
		case map[string]any:
			if name == "namespace" {
				continue
			}
			if meta, ok := value["metadata"].(map[string]any); ok {
				if uid, ok := meta["uid"].(string); ok {
					add(uid)
				}
			}
		case string:
			if isHandle[name] {
				add(value)
			}
		}
	}
	return h.Sum64()
}

// isHandle has the variables that are handles, and the names of buckets and accounts.
var isHandle = map[string]bool{
	"handle": true, "defaultHandle": true, "volumeHandle": true, "snapshotHandle": true, "defaultSnapshotHandle": true,
	"bucketName": true, "accountName": true,
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
