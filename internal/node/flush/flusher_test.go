package flush

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

const (
	earlier = "2026-01-01T12:00:00.000001Z"
	now     = "2026-01-01T12:00:00.000002Z"
	later   = "2026-01-01T12:00:00.000003Z"
)

func timeOf(t *testing.T, value string) *metav1.MicroTime {
	t.Helper()
	at, err := time.Parse(pavv1.RetryFormat, value)
	nodetest.Must(t, err)
	return &metav1.MicroTime{Time: at}
}

// world is a node with one PavStage.
type world struct {
	*Flusher

	api     client.WithWatch
	syncs   int
	during  func() // what happens while the volume is written back
	problem error
}

// Sync implements Syncer.
func (w *world) Sync(context.Context, string) error {
	w.syncs++
	w.during()
	return w.problem
}

func newWorld(t *testing.T, change func(*pavv1.PavStage)) *world {
	t.Helper()
	is := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: "stage-a", UID: "u", Finalizers: []string{pavv1.StageFinalizer}, Annotations: map[string]string{pavv1.SyncAnnotation: now}},
		Spec:       pavv1.PavStageSpec{VolumeName: "pv", NodeName: "node", Scope: pavv1.StagingScopeNode},
		Status:     pavv1.PavStageStatus{Phase: pavv1.StageStaged, BootID: "boot"},
	}
	change(is)
	scheme := runtime.NewScheme()
	nodetest.Must(t, pavv1.AddToScheme(scheme))
	w := &world{during: func() {}, api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(is).WithStatusSubresource(is).Build()}
	w.Flusher = New(stage.New(stage.Config{Client: w.api, Node: "node", Boot: pavdir.Boot{BootID: "boot"}, Version: "v"}), w)
	return w
}

func (w *world) stage(t *testing.T) *pavv1.PavStage {
	t.Helper()
	is := &pavv1.PavStage{}
	nodetest.Must(t, w.api.Get(t.Context(), client.ObjectKey{Name: "stage-a"}, is))
	return is
}

func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "stage-a"}})
}

// wantAnswer checks the answer in the status, and how often the volume was written back.
func (w *world) wantAnswer(t *testing.T, syncs int, synced, problem string) {
	t.Helper()
	status, got := w.stage(t).Status, ""
	if status.SyncedTime != nil {
		got = status.SyncedTime.UTC().Format(pavv1.RetryFormat)
	}
	if w.syncs != syncs || got != synced || status.SyncError != problem {
		t.Errorf("after %d times: %q, %q; want %d times, %q, %q", w.syncs, got, status.SyncError, syncs, synced, problem)
	}
}

func TestReconcile(t *testing.T) {
	annotate := func(value string) func(*pavv1.PavStage) {
		return func(s *pavv1.PavStage) { s.Annotations[pavv1.SyncAnnotation] = value }
	}
	phase := func(is pavv1.StagePhase) func(*pavv1.PavStage) {
		return func(s *pavv1.PavStage) { s.Status.Phase = is }
	}
	synced := func(value string) func(*pavv1.PavStage) {
		return func(s *pavv1.PavStage) { s.Status.SyncedTime = timeOf(t, value) }
	}
	tests := map[string]struct {
		change func(*pavv1.PavStage)
		syncs  int
		want   string
	}{
		"it is requested":                      {func(*pavv1.PavStage) {}, 1, now},
		"it is requested again":                {synced(earlier), 1, now},
		"it failed before":                     {func(s *pavv1.PavStage) { s.Status.SyncError = "no" }, 1, now},
		"it is requested with nanoseconds":     {annotate("2026-01-01T12:00:00.000002999Z"), 1, now},
		"it is requested in another time zone": {annotate("2026-01-01T13:00:00.000002+01:00"), 1, now},
		"for a client pod":                     {func(s *pavv1.PavStage) { s.Spec.Scope, s.Spec.Client = pavv1.StagingScopePod, &pavv1.StageClient{} }, 1, now},
		"it is not requested":                  {func(s *pavv1.PavStage) { s.Annotations = nil }, 0, ""},
		"it is answered":                       {synced(now), 0, now},
		"a later request is answered":          {synced(later), 0, later},
		"the request is no time":               {annotate("now"), 0, ""},
		"it is read-only":                      {func(s *pavv1.PavStage) { s.Spec.ReadOnly = true }, 0, now},
		"it is only reserved":                  {func(s *pavv1.PavStage) { s.Spec.Scope = pavv1.StagingScopePod }, 0, now},
		"another node has it":                  {func(s *pavv1.PavStage) { s.Spec.NodeName = "other" }, 0, ""},
		"it is not staged yet":                 {phase(""), 0, ""},
		"it is being validated":                {phase(pavv1.StageValidating), 0, ""},
		"it is being staged":                   {phase(pavv1.StageStaging), 0, ""},
		"it is being unstaged":                 {phase(pavv1.StageUnstaging), 0, ""},
		"it failed":                            {phase(pavv1.StageFailed), 0, ""},
		"it is being restaged":                 {func(s *pavv1.PavStage) { s.Status.Restaging = true }, 0, ""},
		"the node restarted":                   {func(s *pavv1.PavStage) { s.Status.BootID = "other" }, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.change)
			for range 2 { // The second time, nothing is left to do.
				result, err := w.reconcile(t)
				nodetest.Must(t, err)
				if !result.IsZero() {
					t.Errorf("it is repeated: %v", result)
				}
			}
			w.wantAnswer(t, test.syncs, test.want, "")
			if answered := test.want == now; answered && w.pending(w.stage(t)) {
				t.Error("the answer of the agent makes it look again")
			}
		})
	}
}

func TestReconcile_FailureIsAnswered_AndRepeated(t *testing.T) {
	w := newWorld(t, func(s *pavv1.PavStage) { s.Status.SyncedTime = timeOf(t, earlier) })
	w.problem = errors.New("input/output\nerror")
	if _, err := w.reconcile(t); !errors.Is(err, w.problem) {
		t.Errorf("got %v, want %v for the backoff", err, w.problem)
	}
	w.wantAnswer(t, 1, earlier, "writing volume pv back on node node: input/output error")
	if !w.pending(w.stage(t)) {
		t.Error("it counts as answered")
	}
	w.problem = nil
	_, err := w.reconcile(t)
	nodetest.Must(t, err)
	w.wantAnswer(t, 2, now, "")
}

// What changes a PavStage may have taken the volume away, and made another one available.
func TestReconcile_PavStageIsChangedMeanwhile(t *testing.T) {
	w := newWorld(t, func(*pavv1.PavStage) {})
	w.during = func() {
		is := w.stage(t)
		is.Annotations[pavv1.SyncAnnotation] = later
		nodetest.Must(t, w.api.Update(t.Context(), is))
	}
	result, err := w.reconcile(t)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v; want that it is repeated soon", result, err)
	}
	w.wantAnswer(t, 1, "", "")
	w.during = func() {}
	_, err = w.reconcile(t)
	nodetest.Must(t, err)
	w.wantAnswer(t, 2, later, "")
}

func TestReconcile_AgentEndsMeanwhile(t *testing.T) {
	w := newWorld(t, func(*pavv1.PavStage) {})
	ctx, cancel := context.WithCancel(t.Context())
	w.during, w.problem = cancel, context.Canceled
	_, err := w.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: "stage-a"}})
	nodetest.Must(t, err)
	w.wantAnswer(t, 1, "", "")
}

func TestPredicate(t *testing.T) {
	w := newWorld(t, func(*pavv1.PavStage) {})
	p, is := w.predicate(), w.stage(t)
	want := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %t, want %t", what, got, want)
		}
	}
	want("the agent starts", p.Create(event.CreateEvent{Object: is}), true)
	want("it becomes available", p.Update(event.UpdateEvent{ObjectOld: is, ObjectNew: is}), true)
	_, err := w.reconcile(t)
	nodetest.Must(t, err)
	is = w.stage(t)
	want("it is answered", p.Update(event.UpdateEvent{ObjectOld: is, ObjectNew: is}), false)
	next := is.DeepCopy()
	next.UID = "other"
	want("another PavStage has the name", p.Create(event.CreateEvent{Object: next}), true)
	next = is.DeepCopy()
	next.Annotations[pavv1.SyncAnnotation] = later
	want("the next request", p.Update(event.UpdateEvent{ObjectOld: is, ObjectNew: next}), true)
	want("it is gone", p.Delete(event.DeleteEvent{Object: is}), false)
	if len(w.answered) > 0 {
		t.Errorf("remembered is %v", w.answered)
	}
	nodetest.Must(t, w.api.Delete(t.Context(), is))
	is = w.stage(t)
	is.Finalizers = nil
	nodetest.Must(t, w.api.Update(t.Context(), is))
	_, err = w.reconcile(t)
	nodetest.Must(t, err)
}

// A volume that hangs is answered with an error, and with the time once it does not hang any more. Others are not held up.
func TestReconcile_RealVolumes(t *testing.T) {
	m := nodetest.New(t)
	m.PutStage(t, func(s *pavv1.PavStage) { s.Annotations = map[string]string{pavv1.SyncAnnotation: now} })
	other := m.API.Stages["stage-a"].DeepCopy()
	other.Name = "stage-b"
	m.API.Stages["stage-b"] = other
	nodetest.Must(t, os.MkdirAll(m.Dirs.Volume("stage-b"), 0o755))
	nodetest.Must(t, unix.Mount("test", m.Dirs.Volume("stage-b"), "tmpfs", 0, ""))
	goOn := m.Attach(t).Hang()
	f := New(stage.New(stage.Config{Client: m.API, Node: "node", Boot: pavdir.Boot{BootID: "boot"}}), m.Dirs)
	f.timeout = 50 * time.Millisecond
	reconcile := func(name string) (*pavv1.PavStageStatus, error) {
		_, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		return &m.API.Stages[name].Status, err
	}
	for _, words := range []string{"not written back on node node within 50ms", "an earlier attempt still waits"} {
		if status, err := reconcile("stage-a"); err == nil || status.SyncedTime != nil || !strings.Contains(status.SyncError, words) {
			t.Errorf("got %+v, %v; want an error that says %q", status, err, words)
		}
	}
	f.timeout = time.Minute
	if status, err := reconcile("stage-b"); err != nil || status.SyncedTime == nil {
		t.Errorf("another volume: got %+v, %v", status, err)
	}
	goOn()
	nodetest.Must(t, m.Dirs.Detach(t.Context(), "stage-b"))
	for {
		status, err := reconcile("stage-a")
		if err == nil && status.SyncedTime != nil && status.SyncError == "" {
			return
		}
		if t.Context().Err() != nil || !strings.Contains(status.SyncError, "an earlier attempt still waits") {
			t.Fatalf("got %+v, %v", status, err)
		}
	}
}
