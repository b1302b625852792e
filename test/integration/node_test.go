package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/kubelet"
)

// node is a node with a kubelet by hand, and a provisioner whose volumes are staged there.
type node struct {
	*kubelet.Kubelet
	c           *cluster
	agentConfig *rest.Config
	provisioner string
	volumes     int
}

var nodes atomic.Int32

// newNode makes a node, whose pods run the script. When the test ends, which must have ended its agents, nothing may be
// left.
func newNode(tb testing.TB, script kubelet.Script, changes ...func(*pavv1.PavProvisioner)) *node {
	tb.Helper()
	c := start(tb)
	name := fmt.Sprintf("node-%d", nodes.Add(1))
	n := &node{c: c, agentConfig: c.NodeAgent(name), provisioner: name + "-volumes"}
	provisioner := &pavv1.PavProvisioner{
		ObjectMeta: metav1.ObjectMeta{Name: n.provisioner},
		Spec: pavv1.PavProvisionerSpec{
			ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic},
			VolumeCreation:    &pavv1.VolumeCreation{Capacity: field(`"{{ requestedMinCapacity }}"`)},
			VolumeStaging:     pavv1.VolumeStaging{PodTemplate: *field(workerTemplate)},
			VolumeUnstaging:   &pavv1.VolumeUnstaging{PodTemplate: field(workerTemplate)},
		},
	}
	for _, change := range changes {
		change(provisioner)
	}
	mustCreate(tb, c, provisioner)
	accept(tb, c, provisioner)
	tb.Cleanup(func() {
		mustDeleteLasting(tb, c, provisioner)
		eventually(tb, "the volumes are gone", func(ctx context.Context) (bool, string) {
			claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
			err := errors.Join(c.Admin.List(ctx, claims), c.Admin.List(ctx, volumes))
			return err == nil && len(claims.Items)+len(volumes.Items) == 0, fmt.Sprintf("%d claims, %d volumes, %v", len(claims.Items), len(volumes.Items), err)
		})
		checkNothingLeft(tb, c)
	})
	n.start(tb, name, script)
	return n
}

// start starts the node's kubelet.
func (n *node) start(tb testing.TB, name string, script kubelet.Script) {
	tb.Helper()
	n.Kubelet = kubelet.Start(tb, n.c.Admin, name, script)
	tb.Cleanup(func() { n.checkLeft(tb) })
}

// beside makes another node, for the same provisioner.
func (n *node) beside(t *testing.T, script kubelet.Script) *node {
	t.Helper()
	name := fmt.Sprintf("node-%d", nodes.Add(1))
	other := &node{c: n.c, agentConfig: n.c.NodeAgent(name), provisioner: n.provisioner}
	other.start(t, name, script)
	return other
}

// accept does what the controller agent does, which these tests do not run.
func accept(tb testing.TB, c *cluster, provisioner *pavv1.PavProvisioner) {
	tb.Helper()
	meta.SetStatusCondition(&provisioner.Status.Conditions, metav1.Condition{
		Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", Message: "by hand",
	})
	provisioner.Status.StagingScope = provisioner.Scope()
	if err := c.Admin.Status().Update(lasting(tb), provisioner); err != nil {
		tb.Fatal(err)
	}
}

func mustDeleteLasting(tb testing.TB, c *cluster, object client.Object) {
	tb.Helper()
	if err := c.Admin.Delete(lasting(tb), object); client.IgnoreNotFound(err) != nil {
		tb.Error(err)
	}
	gone(tb, c, object)
}

// run starts the node's agent for the duration of the test.
func (n *node) run(tb testing.TB) *kubelet.Agent {
	tb.Helper()
	a := n.Launch(tb, n.agentConfig, 0)
	tb.Cleanup(func() { a.Stop(tb) })
	return a
}

// volume makes a volume of the node's provisioner, and a claim that it is bound to.
func (n *node) volume(tb testing.TB, handle string, changes ...func(*corev1.PersistentVolume)) kubelet.Volume {
	tb.Helper()
	n.volumes++
	v := kubelet.Volume{
		Driver: n.provisioner, Handle: handle, Name: fmt.Sprintf("pv-%s-%d", n.Node, n.volumes), Block: strings.HasPrefix(handle, "block"),
	}
	makeVolume(tb.Context(), tb, n.c, v, changes...)
	tb.Cleanup(func() { removeVolume(lasting(tb), tb, n.c, v) })
	return v
}

// problem receives failures.
type problem interface {
	Errorf(format string, args ...any)
}

func makeVolume(ctx context.Context, t problem, c *cluster, v kubelet.Volume, changes ...func(*corev1.PersistentVolume)) {
	mode := corev1.PersistentVolumeFilesystem
	if v.Block {
		mode = corev1.PersistentVolumeBlock
	}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: v.Name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": v.Driver},
			Labels: workflow.VolumeLabels(v.Driver, v.Handle),
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: v.Driver, VolumeHandle: v.Handle}},
		},
	}
	for _, change := range changes {
		change(volume)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(""), AccessModes: volume.Spec.AccessModes, VolumeMode: &mode, VolumeName: v.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	if err := c.Admin.Create(ctx, claim); err != nil {
		t.Errorf("making a claim: %v", err)
		return
	}
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
	if err := c.Admin.Create(ctx, volume); err != nil {
		t.Errorf("making a persistent volume: %v", err)
	}
}

func removeVolume(ctx context.Context, t problem, c *cluster, v kubelet.Volume) {
	for _, object := range []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.Name}},
	} {
		if err := c.Admin.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			t.Errorf("removing a volume: %v", err)
		}
	}
}

// stages returns the PavStages of the node.
func (n *node) stages(t *testing.T) []pavv1.PavStage {
	t.Helper()
	list := &pavv1.PavStageList{}
	if err := n.c.Admin.List(lasting(t), list, client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(n.Node)}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// checkLeft waits until nothing is left of the node's volumes and pods.
func (n *node) checkLeft(tb testing.TB) {
	tb.Helper()
	ours := client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(n.Node)}
	seen := ""
	eventually(tb, "nothing is left on the node", func(ctx context.Context) (bool, string) {
		left, err := n.Left()
		if err != nil {
			return false, err.Error()
		}
		for _, list := range []client.ObjectList{&pavv1.PavStageList{}, &corev1.PodList{}} {
			if err := n.c.Admin.List(ctx, list, ours); err != nil {
				return false, fmt.Sprintf("%v; before that: %s", err, seen)
			}
			eachItem(tb, list, func(object client.Object) {
				left = append(left, fmt.Sprintf("%T %s, deleted %v, finalizers %v", object, object.GetName(), object.GetDeletionTimestamp(), object.GetFinalizers()))
			})
		}
		seen = strings.Join(left, "\n")
		return len(left) == 0, seen
	})
}

// succeed repeats a call until it succeeds, as kubelet does.
func (n *node) succeed(tb testing.TB, what string, call func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(lasting(tb), deadline)
	defer cancel()
	errs := n.Until(ctx, call)
	if last := errs[len(errs)-1]; last != nil {
		tb.Fatalf("%s: after %d calls: %v, before %v", what, len(errs), last, errs[max(0, len(errs)-2)])
	}
}

func (n *node) stage(tb testing.TB, v kubelet.Volume) {
	tb.Helper()
	n.succeed(tb, "staging", func(ctx context.Context) error { return n.Stage(ctx, v) })
}

func (n *node) unstage(tb testing.TB, v kubelet.Volume) {
	tb.Helper()
	n.succeed(tb, "unstaging", func(ctx context.Context) error { return n.Unstage(ctx, v) })
}

func (n *node) publish(t *testing.T, v kubelet.Volume, p kubelet.Client) {
	t.Helper()
	n.succeed(t, "publishing", func(ctx context.Context) error { return n.Publish(ctx, v, p) })
}

func (n *node) unpublish(t *testing.T, v kubelet.Volume, p kubelet.Client) {
	t.Helper()
	n.succeed(t, "unpublishing", func(ctx context.Context) error { return n.Unpublish(ctx, v, p) })
}

// wantRuns fails the test unless pods of each workflow ran so often for a volume, none of them twice.
func (n *node) wantRuns(t *testing.T, v kubelet.Volume, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, n.Journal.Runs(v.Handle)); diff != "" {
		t.Errorf("runs of pods for %s (-want +got):\n%s", v.Handle, diff)
	}
	seen := map[string]bool{}
	for _, entry := range n.Journal.Of(v.Handle) {
		if seen[string(entry.Pod)] {
			t.Errorf("pod %s of workflow %s ran again", entry.Pod, entry.Workflow)
		}
		seen[string(entry.Pod)] = true
	}
}

// reads says what a client reads in a volume, whichever its mode.
func (n *node) reads(v kubelet.Volume, p kubelet.Client) (string, error) {
	target := n.Target(v, p)
	if !v.Block {
		text, err := os.ReadFile(filepath.Join(target, "name"))
		return string(text), err
	}
	var stat unix.Stat_t
	if err := unix.Stat(target, &stat); err != nil {
		return "", err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s has mode %o", target, stat.Mode)
	}
	file, err := os.Open(target)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text := make([]byte, len(deviceContent))
	_, err = file.Read(text)
	return string(text), err
}

// wantRead fails the test unless a client reads what the staging pod has made.
func (n *node) wantRead(t *testing.T, v kubelet.Volume, p kubelet.Client) {
	t.Helper()
	want := v.Handle
	if v.Block {
		want = deviceContent
	}
	if got, err := n.reads(v, p); err != nil || got != want {
		t.Errorf("%s reads %q, %v; want %q", p.Name, got, err, want)
	}
}

// clientOf returns the how many-th client pod of a volume.
func clientOf(v kubelet.Volume, number int) kubelet.Client {
	name := fmt.Sprintf("%s-client-%d", v.Name, number)
	return kubelet.Client{Namespace: "default", Name: name, UID: "uid-of-" + name}
}

func runs(kinds ...string) map[string]int {
	counts := map[string]int{}
	for _, kind := range kinds {
		counts[kind]++
	}
	return maps.Clone(counts)
}
