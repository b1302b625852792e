package agents

import "github.com/albertofaria/pav/test/simulation/world"

// Faults are how often, of a thousand times, something happens to a request of an agent.
type Faults struct {
	// Refused requests have no effect, and Cut ones have it although their answer is an error. Killed are agents whose
	// request had its effect, and who never hear of it.
	Refused, Cut, Killed int

	// Weak is one of Kinds at which many more agents are killed; empty for none.
	Weak string
}

// Kinds are what agents write, and what node agents do to their node, each of which may be their last.
var Kinds = []string{
	"create PavVolume", "patch PavVolume", "patch status of PavVolume", "delete PavVolume",
	"create PersistentVolume", "patch PersistentVolume", "delete PersistentVolume",
	"create PavStage", "patch PavStage", "update status of PavStage", "delete PavStage",
	"create Pod", "patch Pod", "delete Pod", "patch PavProvisioner", "create CSIDriver",
	"Record", "Prepare", "Reset", "Attach", "Detach", "Remove", "Bind", "Unmount", "RemoveTarget",
	"RecordPublication", "ForgetPublication", "PublishPod", "UnpublishPod",
}

// weakness is how often, of a thousand times, an agent is killed at what is Weak.
const weakness = 200

// kill reports whether an agent is killed at a call.
func (f *Faults) kill(w *world.World, call *world.Call, kind func(*world.Call) string) bool {
	if f.Weak != "" && f.Weak == kind(call) {
		return w.Chance(weakness)
	}
	return w.Chance(f.Killed)
}
