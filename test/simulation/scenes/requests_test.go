package scenes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/test/simulation/world"
)

// asked is how often the controller agent sends a request for a volume.
type asked struct {
	request string
	times   int

	// check says for which steps that cannot be undone the API server is asked again; "" for all other requests.
	check string
}

// Steps that cannot be undone, before which the controller agent asks the API server and not its cache.
const (
	beforeRecord = "the record of a claim"
	beforePod    = "the creation pod"
	beforeVolume = "the PersistentVolume"
	beforeDelete = "the deletion of the storage"
	beforeForget = "the deletion of the record"
)

// The requests of a claim's whole life must not grow unnoticed; docs/performance.md has their numbers, and says which are
// not counted.
func TestControllerRequests_OfAWholeLife(t *testing.T) {
	checks := []asked{
		{"get PavProvisioner", 1, beforeRecord},
		{"get PavProvisioner", 1, beforeVolume}, {"get PavProvisioner", 1, beforeDelete}, {"get PavProvisioner", 1, beforeForget},
		{"get PersistentVolume", 1, beforeVolume}, {"get PersistentVolume", 1, beforeDelete}, {"get PersistentVolume", 1, beforeForget},
		{"get PersistentVolumeClaim", 1, beforeVolume}, {"get PersistentVolumeClaim", 1, beforeDelete}, {"get PersistentVolumeClaim", 1, beforeForget},
		{"list PavStage", 1, beforeVolume}, {"list PavStage", 1, beforeDelete},
		{"list PavVolume", 1, beforeVolume}, {"list PavVolume", 1, beforeDelete},
		{"list PersistentVolume", 2, beforeVolume}, {"list PersistentVolume", 2, beforeDelete}, // with the driver's label, and without
	}
	objects := []asked{
		{"get PersistentVolumeClaim", 3, ""}, // to record it, to validate it, and to copy it when it is bound
		{"get StorageClass", 1, ""},
		{"create PavVolume", 1, ""},
		{"patch PavVolume", 2, ""}, // the copy of the bound claim, the finalizer
		{"delete PavVolume", 1, ""},
		{"create PersistentVolume", 1, ""},
		{"delete PersistentVolume", 1, ""},
		{"patch PersistentVolume", 1, ""}, // the finalizer
	}
	tests := map[string]struct {
		most int // without checks
		want []asked
	}{
		"without-pods": {15, slices.Concat(checks, objects, []asked{
			{"get PavVolume", 1, ""},
			{"patch status of PavVolume", 3, ""}, // handle, Ready, Deleting
		})},
		"life": {27, slices.Concat(checks, objects, []asked{
			{"get PersistentVolume", 1, beforePod},
			{"list PavStage", 1, beforeForget}, {"list PavVolume", 1, beforeForget}, {"list PersistentVolume", 2, beforeForget},
			{"get PavVolume", 2, ""},
			{"get PersistentVolumeClaim", 1, ""}, // for the template of the deletion pod
			{"patch status of PavVolume", 7, ""}, // for each pod: that it will be created, its UID, its result; and Ready
			{"create Pod", 2, ""},
			{"patch Pod", 2, ""}, // the finalizer
			{"delete Pod", 2, ""},
		})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := fewest(t, sceneOf(t, name))
			want, counted := map[string]int{}, 0
			for _, times := range got {
				counted += times
			}
			for _, a := range test.want {
				want[a.request] += a.times
				if a.check != "" {
					counted -= a.times
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if counted > test.most {
				t.Errorf("%d requests besides checks, want at most %d", counted, test.most)
			}
		})
	}
}

func sceneOf(t *testing.T, name string) Scene {
	t.Helper()
	at := slices.IndexFunc(All, func(s Scene) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("there is no scene %q", name)
	}
	return All[at]
}

// fewest plays a scene in several orders, and returns the lowest number of each request of the controller agent for
// volumes: a pass that sees an old cache may repeat a request.
func fewest(t *testing.T, s Scene) map[string]int {
	t.Helper()
	var least map[string]int
	for seed := range uint64(20) {
		count := map[string]int{}
		for _, pass := range passes(t, s, seed) {
			if !slices.ContainsFunc(pass, isOfVolume) {
				continue
			}
			for _, request := range pass {
				count[request]++
			}
		}
		if n := count["delete PavVolume"]; n != 1 {
			t.Errorf("in the order of seed %d, the PavVolume is deleted %d times", seed, n)
		}
		if least == nil {
			least = count
		}
		for request := range least {
			least[request] = min(least[request], count[request])
		}
	}
	maps.DeleteFunc(least, func(_ string, times int) bool { return times == 0 })
	return least
}

// passes plays a scene and returns the requests of the controller agent, without names, by reconcile ID.
func passes(t *testing.T, s Scene, seed uint64) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	simulateHeard(t, s, seed, func(c *world.Call) {
		if by, what, _ := strings.Cut(c.What, " "); strings.HasPrefix(by, "controller") {
			found[c.Pass] = append(found[c.Pass], withoutName(what))
		}
	})
	return found
}

// withoutName removes the name of the object from a request. A list has none.
func withoutName(request string) string {
	if strings.HasPrefix(request, "list ") {
		return request
	}
	return request[:strings.LastIndex(request, " ")]
}

// isOfVolume reports whether only passes over claims and volumes send a request.
func isOfVolume(request string) bool {
	kind := request[strings.LastIndex(request, " ")+1:]
	return !strings.HasPrefix(request, "list ") && slices.Contains([]string{"PersistentVolumeClaim", "Pod", "PavVolume", "PersistentVolume"}, kind)
}
