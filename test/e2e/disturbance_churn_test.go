package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/test/seed"
)

// churning is the provisioner of the volumes that come and go.
const churning = "churning"

// churner creates and deletes client pods and claims, one after the other, so that disturbances hit all workflows.
type churner struct {
	name, namespace, node string

	// shared is the claim, in use by others, that its pods use; empty for a claim of each pod's own.
	shared string

	random *rand.Rand
	rounds atomic.Int32 // how many pods came and went
	failed atomic.Bool
	doing  atomic.Pointer[activity]
	begins chan<- activity // takes what it begins to do, if anybody is interested
}

// activity is what a churner does.
type activity struct {
	what string
	node string
}

// The activities that need work of PaV.
const (
	makingClaim   = "making a claim"
	startingPod   = "starting a pod"
	deletingPod   = "deleting a pod"
	deletingClaim = "deleting a claim"
)

// startChurn starts a churner of claims of its own and one of claims in use on every node. It returns
// them, what they begin to do, and a function that lets them finish.
func startChurn(t *testing.T, namespace string, chosen uint64) ([]*churner, <-chan activity, func()) {
	t.Helper()
	apply(t, namespace, documents(provisioner(churning, stageCompleting, "umount /pav/volume"), storageClass(churning)))
	begins := make(chan activity)
	var churners []*churner
	for i, node := range nodes {
		shared := []string{completing, fusing}[i%2]
		for _, c := range []*churner{{name: "own-" + node}, {name: "shared-" + node, shared: shared}} {
			c.namespace, c.node, c.begins = namespace, node, begins
			c.random = seed.Stream(chosen, uint64(len(churners)+1))
			c.do("nothing yet")
			churners = append(churners, c)
		}
	}

	ctx := t.Context()
	stopping, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	for _, c := range churners {
		working.Go(func() {
			for stopping.Err() == nil {
				if err := c.round(ctx); err != nil {
					t.Errorf("%s, round %d, %s: %v", c.name, c.rounds.Load()+1, c.doing.Load().what, err)
					c.failed.Store(true)
					return
				}
				c.rounds.Add(1)
			}
		})
	}
	finish := sync.OnceFunc(func() { stop(); working.Wait() })
	t.Cleanup(func() {
		finish()
		sweepChurn(t, namespace)
	})
	return churners, begins, finish
}

// sweepChurn removes what churners that failed have left.
func sweepChurn(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	for _, object := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if err := kube.DeleteAllOf(ctx, object, client.InNamespace(namespace)); err != nil {
			t.Error(err)
		}
	}
}

func (c *churner) do(what string) {
	begun := activity{what: what, node: c.node}
	c.doing.Store(&begun)
	select {
	case c.begins <- begun:
	default:
	}
}

// round lets one pod, and its claim if it has its own, come and go.
func (c *churner) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	name := fmt.Sprintf("%s-%d", c.name, c.rounds.Load()+1)
	claimName := c.shared
	if claimName == "" {
		claimName = name
		c.do(makingClaim)
		if err := c.makeClaim(ctx, name); err != nil {
			return err
		}
	}
	c.do(startingPod)
	pod := &corev1.Pod{}
	if err := createText(ctx, c.namespace, clientPod(name, claimName, c.node), pod); err != nil {
		return err
	}
	if c.random.IntN(8) > 0 { // Else it is deleted while it starts.
		if err := poll(ctx, func(ctx context.Context) error { return c.podWorks(ctx, name) }); err != nil {
			return err
		}
		c.do("using a volume")
	}
	pause(ctx, time.Duration(c.random.IntN(1500))*time.Millisecond)

	// A pod without a grace period is gone from the API server before it is from its node.
	c.do(deletingPod)
	if err := deleteAndWait(ctx, pod, client.GracePeriodSeconds(c.random.IntN(2))); err != nil || c.shared != "" {
		return err
	}
	c.do(deletingClaim)
	if err := deleteAndWait(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(c.namespace, claimName)}); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { return c.wantNoVolume(ctx, claimName) })
}

// wantNoVolume objects while the volume of a claim exists.
func (c *churner) wantNoVolume(ctx context.Context, claim string) error {
	volumes := &corev1.PersistentVolumeList{}
	if err := kube.List(ctx, volumes); err != nil {
		return err
	}
	for i := range volumes.Items {
		if ref := volumes.Items[i].Spec.ClaimRef; ref != nil && ref.Namespace == c.namespace && ref.Name == claim {
			return fmt.Errorf("persistent volume %s of claim %s still exists", volumes.Items[i].Name, claim)
		}
	}
	return nil
}

// makeClaim makes a claim and, most of the time, waits until it is bound.
func (c *churner) makeClaim(ctx context.Context, name string) error {
	made := &corev1.PersistentVolumeClaim{}
	if err := createText(ctx, c.namespace, claim(name, churning, "ReadWriteOnce"), made); err != nil || c.random.IntN(4) == 0 {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { return wantBound(ctx, made) })
}

// createText creates what YAML says, in a namespace unless that is empty.
func createText(ctx context.Context, namespace, text string, object client.Object) error {
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		return err
	}
	object.SetNamespace(namespace)
	return kube.Create(ctx, object)
}

// deleteAndWait deletes an object and waits until it is gone.
func deleteAndWait(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := kube.Delete(ctx, object, options...); client.IgnoreNotFound(err) != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { return gone(ctx, object) })
}

// podWorks objects until the pod runs, and writes to its volume and reads back.
func (c *churner) podWorks(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, pod); err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
	}
	path := "/data/file-of-" + name
	out, err := inPod(ctx, c.namespace, name, fmt.Sprintf("grep -qE ' /data (tmpfs|fuse)' /proc/mounts && echo %[1]s > %[2]s && cat %[2]s && rm %[2]s", name, path))
	if err == nil && out != name+"\n" {
		err = errors.New("it reads " + out)
	}
	return err
}
