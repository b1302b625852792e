package agents

import "github.com/albertofaria/pav/test/simulation/world"

// Faults are the rates, in thousandths, of faults of an agent's requests.
type Faults struct {
	// Refused is the rate of requests that fail without an effect. Cut is the rate of requests that may take effect
	// although their answer is an error. Killed is the rate of kills of the agent: after the effect of a write and
	// before its answer, or before an operation on the node.
	Refused, Cut, Killed int

	// Weak is one of Kinds. Agents are killed much more often at it; empty for none.
	Weak string
}

// Kinds are the agents' kinds of writes, and the node agents' kinds of operations on the node. An agent may be killed
// at each of them.
var Kinds = []string{
	"create PavVolume", "patch PavVolume", "patch status of PavVolume", "delete PavVolume",
	"create PersistentVolume", "patch PersistentVolume", "delete PersistentVolume",
	"create PavStage", "patch PavStage", "update status of PavStage", "delete PavStage",
	"create Pod", "patch Pod", "delete Pod", "patch PavProvisioner", "create CSIDriver",
	"Record", "Prepare", "Reset", "Attach", "Detach", "Remove", "Bind", "Unmount", "RemoveTarget",
	"RecordPublication", "ForgetPublication", "PublishPod", "UnpublishPod",
}

// KindsOfCopies are further kinds of writes, in worlds with copies.
var KindsOfCopies = []string{
	"create PavSnapshot", "patch PavSnapshot", "patch status of PavSnapshot", "delete PavSnapshot",
	"patch VolumeSnapshotContent", "patch status of VolumeSnapshotContent", "patch status of PavVolume",
}

// weakness is the rate, in thousandths, of kills at the kind in Weak.
const weakness = 200

// kill reports whether the agent is killed at a call. It chooses at random.
func (f *Faults) kill(w *world.World, call *world.Call, kind func(*world.Call) string) bool {
	if f.Weak != "" && f.Weak == kind(call) {
		return w.Chance(weakness)
	}
	return w.Chance(f.Killed)
}
