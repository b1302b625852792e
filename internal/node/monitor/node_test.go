package monitor

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/node/pavdir"
	staging "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

// testNode is a node with its Monitor.
type testNode struct {
	*nodetest.Machine
	*Monitor
}

func newNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{Machine: nodetest.New(t)}
	host := staging.Host{Namespace: n.Mounts}
	stager := staging.New(staging.Config{
		Client: n.API, Catalogue: nodetest.Provisioners{Recovery: pavv1.StagingRecoveryRestage}, Dirs: n.Dirs, Mounts: host, Notifier: staging.NewNotifier(), Events: n.Events,
		Node: "node", Boot: pavdir.Boot{BootID: "boot"}, ClusterTime: func() time.Time { return n.now() },
	})
	n.Monitor = New(stager, Config{
		Prober: host, OrphanGrace: time.Hour, Metrics: prometheus.NewPedanticRegistry(), Log: testr.New(t),
	})
	t.Cleanup(func() {
		n.queue.ShutDown()
		n.arrivals.ShutDown()
		n.wg.Wait()
	})
	return n
}

// unused makes kubelet's last call for the stage one that ended a time ago.
func (n *testNode) unused(since time.Duration) {
	n.callEnded("stage-a")
	n.now = func() time.Time { return time.Now().Add(since) }
}

// look makes the Monitor check the stage, and returns the resulting events.
func (n *testNode) look(t *testing.T) []string {
	t.Helper()
	must(t, n.check(t.Context(), "stage-a"))
	n.wg.Wait()
	events := []string{}
	for {
		select {
		case event := <-n.Events:
			events = append(events, event)
		default:
			slices.Sort(events)
			return events
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	nodetest.Must(t, err)
}
