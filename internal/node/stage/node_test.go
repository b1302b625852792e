package stage

import (
	"os"
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

// testNode is a node with its Stager.
type testNode struct {
	*nodetest.Machine
	stager *Stager
	ended  map[string]bool // the stages about which a call has ended
}

func newNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{Machine: nodetest.New(t), ended: map[string]bool{}}
	host := Host{Namespace: n.Mounts}
	n.stager = New(Config{
		Client: n.API, Catalogue: nodetest.Provisioners{Recovery: pavv1.StagingRecoveryRestage}, Dirs: n.Dirs, Mounts: host,
		Notifier: NewNotifier(), Events: n.Events, Node: "node", Boot: pavdir.Boot{BootID: "boot"},
	})
	n.stager.Observe(health.NewTracker(host, func(string) {}, time.Now), func(stage string) { n.ended[stage] = true })
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	nodetest.Must(t, err)
}
