package integration

import (
	"net/http"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
)

// ahead is how much later the API server of these tests says it is: an agent's own clock is behind by that.
const ahead = 4 * time.Minute

// later returns a configuration with which the API server says that it is later than it is.
func later(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	return relayed(t, config, func(*http.Request) {}, func(response *http.Response) error {
		date, err := http.ParseTime(response.Header.Get("Date"))
		response.Header.Set("Date", date.Add(ahead).Format(http.TimeFormat))
		return err
	})
}

// wantLater fails the test unless an object that was made just now has a condition with the API server's time.
func wantLater(t *testing.T, made metav1.Time, conditions []metav1.Condition, kind string) {
	t.Helper()
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		t.Fatalf("there is no condition %s in %v", kind, conditions)
	}
	if after := c.LastTransitionTime.Sub(made.Time); after < ahead-5*time.Second {
		t.Errorf("condition %s is of %s after the object, want at least %s", kind, after, ahead)
	}
}

func TestControllerAgent_GoesByTheClockOfTheAPIServer(t *testing.T) {
	c := start(t)
	a := agent.Launch(t, later(t, c.agent), agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() {
		a.Stop(t)
		checkNothingLeft(t, c)
	})
	p := driver(t, c, "later", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"a"`)
		p.Spec.VolumeCreation.Capacity = field(`"1Gi"`)
	})
	claim := mustCreate(t, c, claimOf("later", "data"))
	_, volume := bound(t, c, claim)
	wantLater(t, volume.CreationTimestamp, volume.Status.Conditions, pavv1.VolumeProvisioned)
	exists(t, c, p, "is accepted", func(p *pavv1.PavProvisioner) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerAccepted)
	})
	wantLater(t, p.CreationTimestamp, p.Status.Conditions, pavv1.ProvisionerAccepted)
	mustDelete(t, c, claim)
	gone(t, c, claim)
	gone(t, c, volume)
}

func TestNodeAgent_GoesByTheClockOfTheAPIServer(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)))
	n.agentConfig = later(t, n.agentConfig)
	n.run(t)
	v := n.volume(t, "served")
	n.stage(t, v)
	stages := n.stages(t)
	if len(stages) != 1 {
		t.Fatalf("got %d PavStages, want 1", len(stages))
	}
	wantLater(t, stages[0].CreationTimestamp, stages[0].Status.Conditions, pavv1.StageReady)
	n.unstage(t, v)
}
