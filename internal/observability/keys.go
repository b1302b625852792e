package observability

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The keys by which both agents' log lines name things. Claims and pods are named NAMESPACE/NAME.
const (
	Claim       = "claim"
	Volume      = "volume" // the name of the PersistentVolume, and of the PavVolume
	Stage       = "stage"  // the name of the PavStage
	Node        = "node"
	Pod         = "pod"
	Provisioner = "provisioner"
	Namespace   = "namespace"
)

// Name returns how claims and pods are named in log lines.
func Name(namespace, name string) string { return namespace + "/" + name }

// Requests makes the loggers of a reconciler, for builder.WithLogConstructor: their lines have the
// controller's name, the object of the request under its key, and what more says of that, if anything does.
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

// notes are keys and values that a call's log line is to have.
type notes struct {
	mu     sync.Mutex
	keys   []string
	values map[string]string
}

type notesKey struct{}

// WithNotes returns a context in which Note takes notes, and what returns them as keys and values.
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

// Note has the log line of the call that a context belongs to say something under a key, as soon as that is
// known. The last value of a key counts; an empty one is none.
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
