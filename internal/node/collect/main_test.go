package collect

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

const (
	podName = "create-1"
	podUID  = types.UID("uid")
)

var volume = "csi-" + strings.Repeat("0123456789abcdef", 4)

// node is a node with real directories and a pod. It is also the API server that has the pod.
type node struct {
	*Collector
	kubelet, target string

	pod       *corev1.Pod               // as the API server has it; nil if it is gone
	results   []string                  // the written results
	patches   []string                  // the requested patches
	queued    chan types.NamespacedName // the queued reports
	announced int                       // how often it was written that the pod has got /pav

	// fail reports whether a call of the API server, counted from 1, takes effect, and returns the error of its answer.
	fail  func(call int) (effect bool, err error)
	calls int
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{kubelet: t.TempDir(), pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: podName, UID: podUID}}}
	must(t, unix.Mount("kubelet", n.kubelet, "tmpfs", 0, "mode=755"))
	must(t, unix.Mount("", n.kubelet, "", unix.MS_SHARED, ""))
	n.target = filepath.Join(n.kubelet, "pods/uid/volumes/kubernetes.io~csi/pav/mount")
	for _, dir := range []string{n.kubelet + "/plugins", filepath.Dir(n.target)} {
		must(t, os.MkdirAll(dir, 0o750))
	}
	namespace, err := mount.Open("/proc/self/ns/mnt")
	must(t, err)
	dirs, err := pavdir.New(namespace, n.kubelet, func(string) {})
	must(t, err)
	n.Collector = New(n, dirs, pavdir.Boot{BootID: "boot 1"}, testr.New(t))
	n.queued = make(chan types.NamespacedName, 10)
	n.queue = func(pod types.NamespacedName) { n.queued <- pod }
	t.Cleanup(func() {
		must(t, dirs.Close())
		must(t, namespace.Close())
		left, err := mount.Mounts(n.kubelet)
		if err != nil || len(left) != 1 {
			t.Errorf("mounts are left: %v, %v", left, err)
		}
		must(t, unix.Unmount(n.kubelet, unix.MNT_DETACH))
	})
	return n
}

func (n *node) failing() (effect bool, err error) {
	n.calls++
	if n.fail == nil {
		return true, nil
	}
	return n.fail(n.calls)
}

// Get implements API.
func (n *node) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if _, err := n.failing(); err != nil {
		return err
	}
	if n.pod == nil || key != client.ObjectKeyFromObject(n.pod) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	n.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

// Patch implements API, with the rules of the API server and of PaV's policy.
func (n *node) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	effect, err := n.failing()
	if !effect {
		return err
	}
	if n.pod == nil || object.GetName() != n.pod.Name || object.GetNamespace() != n.pod.Namespace {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, object.GetName())
	}
	raw, encodingErr := patch.Data(object)
	n.patches = append(n.patches, string(raw))
	changed := struct{ Metadata metav1.ObjectMeta }{}
	if encodingErr = errors.Join(encodingErr, json.Unmarshal(raw, &changed)); encodingErr != nil || patch.Type() != types.MergePatchType {
		return apierrors.NewBadRequest("no merge patch")
	}
	if changed.Metadata.UID != n.pod.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, n.pod.Name, errors.New("another UID"))
	}
	if changed.Metadata.Annotations[pavv1.GivenAnnotation] != "" && len(changed.Metadata.Annotations) == 1 {
		n.announced++
		return err
	}
	value, ok := changed.Metadata.Annotations[pavv1.ResultAnnotation]
	if _, told := n.pod.Annotations[pavv1.ResultAnnotation]; told || !ok || len(changed.Metadata.Annotations) != 1 {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, n.pod.Name, errors.New("by policy"))
	}
	n.pod.Annotations = changed.Metadata.Annotations
	n.results = append(n.results, value)
	return err
}

func (n *node) publish(t *testing.T) {
	t.Helper()
	must(t, n.Publish(t.Context(), volume, pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID}, n.target))
}

// wantGone checks that nothing of the pod is left on the node.
func (n *node) wantGone(t *testing.T) {
	t.Helper()
	ids, err := n.dirs.Pods(t.Context())
	if err != nil || len(ids) > 0 {
		t.Errorf("directories are left: %q, %v", ids, err)
	}
	if _, err := os.Lstat(n.target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target is left: %v", err)
	}
}

// result returns the result that was reported on the pod.
func (n *node) result(t *testing.T) workflow.Result {
	t.Helper()
	if len(n.results) != 1 {
		t.Fatalf("results were written: %q, want one", n.results)
	}
	result, err := workflow.ResultOf(n.pod)
	must(t, err)
	return *result
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o644))
}
