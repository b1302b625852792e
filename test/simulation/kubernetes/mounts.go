package kubernetes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Times of kubelet: the timeout of a call to a driver, and the shortest and the longest pause after a failed call.
const (
	callTimeout  = 2 * time.Minute
	firstBackoff = 500 * time.Millisecond
	mostBackoff  = 2*time.Minute + 2*time.Second
)

// certainty is kubelet's knowledge of whether a volume is staged or published.
type certainty int

const (
	no certainty = iota
	uncertain
	yes
)

// device is a volume on its node, as kubelet knows it.
type device struct {
	driver, handle string
	pv             string // the PersistentVolume through which kubelet found the device
	block          bool
	staged         certainty
	confused       bool // kubelet unstages the device although pods use it
	operation
}

// target is a volume of a pod, as kubelet knows it.
type target struct {
	device    *device // nil for an inline volume
	namespace string
	name, uid string
	pv        string // or the name of an inline volume
	published certainty
	operation

	// expansion is the state of the calls that make more of the volume available.
	expansion operation
}

// operation is the state of the calls for a device or a target. There is one call at a time, and a pause after a
// failure.
type operation struct {
	attempt *attempt // nil if no call is running
	pause   time.Duration
	due     time.Time

	// found reports that kubelet has restarted since, and has found the volume in its directories. Until a call
	// succeeds, kubelet does not take a final error as proof that the volume is not mounted.
	found bool
}

// settle returns kubelet's knowledge of a volume after a call to stage or publish it. After an error that is not final,
// kubelet is uncertain.
func (o *operation) settle(err error) certainty {
	switch status.Code(err) {
	case codes.OK:
		o.found = false
		return yes
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return uncertain
	default:
		if o.found {
			return uncertain
		}
		return no
	}
}

// attempt is one call of a driver.
type attempt struct {
	outcome func(err error)

	mu    sync.Mutex
	ended bool
	err   error
}

func (t *target) path() string {
	if t.device != nil && t.device.block {
		return fmt.Sprintf("%s/plugins/kubernetes.io/csi/volumeDevices/publish/%s/%s", KubeletDir, t.pv, t.uid)
	}
	return fmt.Sprintf("%s/pods/%s/volumes/kubernetes.io~csi/%s/mount", KubeletDir, t.uid, t.pv)
}

// KubeletDir is the directory of kubelet on all nodes.
const KubeletDir = "/var/lib/kubelet"

func (d *device) path() string {
	if d.block {
		return fmt.Sprintf("%s/plugins/kubernetes.io/csi/volumeDevices/staging/%s", KubeletDir, d.pv)
	}
	return fmt.Sprintf("%s/plugins/kubernetes.io/csi/%s/%x/globalmount", KubeletDir, d.driver, sha256.Sum256([]byte(d.handle)))
}

// call returns an action in which kubelet calls a driver, and its description. It returns nil while another call is
// running, during the pause after a failure, or if no agent serves the driver.
func (n *Node) call(o *operation, what string, driver string, call func(context.Context, csi.NodeServer) error, outcome func(error)) (string, func()) {
	if o.attempt != nil || time.Now().Before(o.due) {
		return "", nil
	}
	server, life := n.Drivers(driver)
	if server == nil {
		return "", nil
	}
	return what, func() {
		a := &attempt{outcome: outcome}
		o.attempt = a
		begun := n.World.Begun(life)
		go func() {
			ctx, cancel := context.WithTimeout(begun, callTimeout)
			defer cancel()
			err := call(ctx, server)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.ended, a.err = true, err
		}()
	}
}

// hear adds the action in which kubelet processes the result of a call, once the call has ended.
func (n *Node) hear(o *operation, about string, add func(world.Choice)) {
	a := o.attempt
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		return
	}
	add(world.Choice{What: fmt.Sprintf("kubelet on %s hears about %s: %s", n.Name, about, status.Code(a.err)), Weight: 4, Do: func() {
		o.attempt = nil
		if a.err == nil {
			o.pause = 0
		} else {
			o.pause = min(max(2*o.pause, firstBackoff), mostBackoff)
			n.World.After(o.pause, func() {})
		}
		o.due = time.Now().Add(o.pause)
		a.outcome(a.err)
	}})
}

// publish returns kubelet's next action for publishing a volume for its pod, if any. Done reports whether the volume is
// published.
func (n *Node) publish(t *target) (what string, do func(), done bool) {
	if t.published == yes {
		return "", nil, true
	}
	if t.attempt != nil || t.expansion.attempt != nil {
		return "", nil, false
	}
	if t.device != nil && t.device.staged != yes {
		what, do = n.stage(t.device)
		return what, do, false
	}
	if n.growing(t) != nil {
		what, do = n.expand(t)
		return what, do, false
	}
	driver, id := pavv1.Driver, inlineID(t)
	if t.device != nil {
		driver, id = t.device.driver, t.device.handle
	}
	request := &csi.NodePublishVolumeRequest{
		VolumeId: id, TargetPath: t.path(), VolumeCapability: t.device.capability(), VolumeContext: map[string]string{
			"csi.storage.k8s.io/pod.name": t.name, "csi.storage.k8s.io/pod.namespace": t.namespace,
			"csi.storage.k8s.io/pod.uid": t.uid, "csi.storage.k8s.io/ephemeral": fmt.Sprint(t.device == nil),
		},
	}
	if t.device != nil {
		request.StagingTargetPath = t.device.path()
	}
	what, do = n.call(&t.operation, "publishes "+t.pv+" for", driver, func(ctx context.Context, server csi.NodeServer) error {
		_, err := server.NodePublishVolume(ctx, request)
		return err
	}, func(err error) { t.published = t.settle(err) })
	begin := do
	if begin == nil {
		return "", nil, false
	}
	return what, func() {
		if t.published == no {
			t.published = uncertain
		}
		n.Machine.KubeletKeeps(uidOf(t), t.pv, true)
		begin()
	}, false
}

func (n *Node) stage(d *device) (string, func()) {
	what, do := n.call(&d.operation, "stages "+d.handle+" for", d.driver, func(ctx context.Context, server csi.NodeServer) error {
		_, err := server.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: d.handle, StagingTargetPath: d.path(), VolumeCapability: d.capability()})
		return err
	}, func(err error) {
		d.staged = d.settle(err)
		d.confused = d.confused && err != nil // an agent finishes an unstaging before it stages again
	})
	if do == nil {
		return "", nil
	}
	return what, func() {
		d.staged = uncertain
		do()
	}
}

// capability returns the volume capability for the calls of a device. The device is nil for an inline volume.
func (d *device) capability() *csi.VolumeCapability {
	c := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
	}
	if d != nil && d.block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

func inlineID(t *target) string { return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(t.uid+t.pv))) }

// unpublish returns kubelet's next action for unpublishing the volumes of a pod, if any. Done reports whether the pod
// has no volume any more.
func (n *Node) unpublish(uid string) (what string, do func(), done bool) {
	done = true
	for _, key := range slices.Sorted(maps.Keys(n.targets)) {
		t := n.targets[key]
		if t.uid != uid {
			continue
		}
		if t.expansion.attempt != nil {
			done = false
			continue
		}
		if t.published == no && t.attempt == nil {
			n.Machine.KubeletKeeps(uidOf(t), t.pv, false)
			delete(n.targets, key)
			continue
		}
		done = false
		driver, id := pavv1.Driver, inlineID(t)
		if t.device != nil {
			driver, id = t.device.driver, t.device.handle
		}
		if what, do = n.call(&t.operation, "unpublishes "+t.pv+" of", driver, func(ctx context.Context, server csi.NodeServer) error {
			_, err := server.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: t.path()})
			return err
		}, func(err error) {
			if err == nil {
				t.published = no
			}
		}); do != nil {
			return what, do, false
		}
	}
	return "", nil, done
}

// unstages adds the results of calls for devices, and the unstaging of devices that no pod needs. It forgets devices
// that are unstaged.
func (n *Node) unstages(add func(world.Choice)) {
	for _, key := range slices.Sorted(maps.Keys(n.devices)) {
		d := n.devices[key]
		n.hear(&d.operation, d.handle, add)
		if d.attempt != nil || n.needed(d) {
			continue
		}
		if d.staged == no {
			delete(n.devices, key)
			continue
		}
		if what, do := n.unstage(d); do != nil {
			add(world.Choice{What: "kubelet on " + n.Name + " " + what, Weight: 3, Do: do})
		}
	}
}

func (n *Node) unstage(d *device) (string, func()) {
	return n.call(&d.operation, "unstages "+d.handle, d.driver, func(ctx context.Context, server csi.NodeServer) error {
		_, err := server.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: d.handle, StagingTargetPath: d.path()})
		return err
	}, func(err error) {
		// After a failure, kubelet is uncertain, and stages the volume again for the next pod: MarkDeviceAsUncertain in
		// GenerateUnmountDeviceFunc and GenerateUnmapDeviceFunc of kubelet's operation_generator.go.
		d.staged = uncertain
		if err == nil {
			d.staged = no
		}
	})
}

// Confuse makes kubelet unstage a volume even if clients use it. The real kubelet may do so after a restart, if it
// wrongly considers the clients gone. There is no mount at the staging path that would show kubelet its mistake.
func (n *Node) Confuse() {
	keys := slices.Sorted(maps.Keys(n.devices))
	if len(keys) == 0 {
		return
	}
	d := n.devices[keys[n.World.Rand.IntN(len(keys))]]
	if what, do := n.unstage(d); do != nil {
		d.confused = true
		n.World.Notef("kubelet on %s is confused, and %s", n.Name, what)
		do()
	}
}

// needed reports whether a pod uses a device, or is about to use it.
func (n *Node) needed(d *device) bool {
	for _, t := range n.targets {
		if t.device == d {
			return true
		}
	}
	return false
}

// targetsOf returns the volumes of a pod, and makes kubelet remember them. Ok is false if kubelet does not know one of
// them yet, because its claim is not bound.
func (n *Node) targetsOf(pod *corev1.Pod) (targets []*target, ok bool) {
	for _, volume := range pod.Spec.Volumes {
		found, ok := n.targetOf(pod, volume)
		if !ok {
			return nil, false
		}
		if found != nil {
			targets = append(targets, found)
		}
	}
	return targets, true
}

func (n *Node) targetOf(pod *corev1.Pod, volume corev1.Volume) (*target, bool) {
	t := &target{namespace: pod.Namespace, name: pod.Name, uid: string(pod.UID), pv: volume.Name}
	switch {
	case volume.CSI != nil && volume.CSI.Driver == pavv1.Driver:
	case volume.PersistentVolumeClaim != nil:
		claim := world.Object[*corev1.PersistentVolumeClaim](n.World.Store, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if claim == nil || claim.Status.Phase != corev1.ClaimBound {
			return nil, false
		}
		pv := world.Object[*corev1.PersistentVolume](n.World.Store, "", claim.Spec.VolumeName)
		if pv == nil || pv.Spec.CSI == nil || !isFor(pv, claim) {
			return nil, false
		}
		key := pv.Spec.CSI.Driver + "/" + pv.Spec.CSI.VolumeHandle
		if n.devices[key] == nil {
			n.devices[key] = &device{
				driver: pv.Spec.CSI.Driver, handle: pv.Spec.CSI.VolumeHandle, pv: pv.Name,
				block: *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock,
			}
		}
		t.device, t.pv = n.devices[key], pv.Name
	default:
		return nil, true
	}
	key := t.uid + "/" + t.pv
	if n.targets[key] == nil {
		n.targets[key] = t
	}
	return n.targets[key], true
}
