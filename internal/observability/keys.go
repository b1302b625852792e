package observability

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The keys of log lines of both agents. The values of claims, of BucketAccesses and of pods are NAMESPACE/NAME.
const (
	Claim           = "claim"
	Volume          = "volume"   // the name of the PersistentVolume, and of the PavVolume
	Stage           = "stage"    // the name of the PavStage
	Snapshot        = "snapshot" // the name of the PavSnapshot
	Bucket          = "bucket"   // the name of the PavBucket
	Access          = "access"   // the name of the PavBucketAccess
	BucketAccess    = "bucketAccess"
	Node            = "node"
	Pod             = "pod"
	Provisioner     = "provisioner"
	Namespace       = "namespace"
	Step            = "step" // what an agent does next
	Rule            = "rule" // the rule that chose the step, by its name in the decision table
	Workflow        = "workflow"
	Reason          = "reason" // why something failed
	AttributesClass = "attributesClass"
	Duration        = "duration" // how long something took
)

// Name returns the value of a claim or pod in log lines.
func Name(namespace, name string) string { return namespace + "/" + name }

// Requests returns the loggers of a reconciler, for builder.WithLogConstructor: their lines have the controller's
// name, the object of the request under its key, and the keys that more returns.
func Requests(log logr.Logger, controller, key string, more func(types.NamespacedName) []any) func(*ctrl.Request) logr.Logger {
	log = log.WithValues("controller", controller)
	return func(request *ctrl.Request) logr.Logger {
		if request == nil {
			return log
		}
		name := request.Name
		if request.Namespace != "" {
			name = Name(request.Namespace, request.Name)
		}
		values := []any{key, name}
		if more != nil {
			values = append(values, more(request.NamespacedName)...)
		}
		return log.WithValues(values...)
	}
}

// notes are the keys and values of a call's log line.
type notes struct {
	mu     sync.Mutex
	keys   []string
	values map[string]string
}

type notesKey struct{}

// WithNotes returns a context for Note, and a function that returns the notes as keys and values.
func WithNotes(ctx context.Context) (context.Context, func() []any) {
	n := &notes{values: map[string]string{}}
	return context.WithValue(ctx, notesKey{}, n), n.list
}

func (n *notes) list() []any {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []any
	for _, key := range n.keys {
		all = append(all, key, n.values[key])
	}
	return all
}

// Note adds a key and value to the log line of the call that the context belongs to. The last value of a key counts;
// an empty value is left out.
func Note(ctx context.Context, key, value string) {
	n, ok := ctx.Value(notesKey{}).(*notes)
	if !ok || value == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.values[key]; !known {
		n.keys = append(n.keys, key)
	}
	n.values[key] = value
}
