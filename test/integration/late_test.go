package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/test/agent"
)

// The cache is behind, each of its kinds at a time by more than a pass takes: nothing is done twice, or
// on the word of what is past, and limits are kept.
func TestCacheBehind_EveryPodRunsOnce(t *testing.T) {
	const many = 3
	c := start(t)
	for _, resource := range []string{"pods", "pavvolumes", "persistentvolumes", "persistentvolumeclaims", "pavprovisioners"} {
		t.Run(resource, func(t *testing.T) {
			o := agent.Options(namespace)
			o.Pods = queue.Limits{Overall: 2, PerProvisioner: 2}
			a := agent.Launch(t, c.agent, o, &agent.Line{Late: map[string]time.Duration{resource: 700 * time.Millisecond}})
			t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
			const name = "late"
			driver(t, c, name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
				withAllPods(p)
				p.Spec.VolumeCreation.Handle = field(`"{{ defaultHandle }}"`)
			})
			h := lendHands(t, c, func(string, int) int32 { return 0 })
			var claims [many]*corev1.PersistentVolumeClaim
			for i := range claims {
				claims[i] = mustCreate(t, c, claimOf(name, fmt.Sprintf("late-%d", i)))
			}
			var left []client.Object
			for _, claim := range claims {
				pv, volume := bound(t, c, claim)
				left = append(left, pv, volume)
			}
			for _, claim := range claims {
				mustDelete(t, c, claim)
			}
			for _, object := range left {
				gone(t, c, object)
			}
			if diff := cmp.Diff(map[string]int{"validate": many, "create": many, "delete": many}, h.rest()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}
