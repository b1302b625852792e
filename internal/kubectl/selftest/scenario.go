package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// scenario is the life of one volume.
type scenario struct {
	*run
	volume volume

	pv    *corev1.PersistentVolume
	first string // the pod that wrote, and that keeps the volume in use
	node  string // the node on which it runs
	other bool   // another node could use the volume
	why   string // why not
	stuck bool   // the volume cannot leave a node, so nothing more can be tested
	wrote bool   // the test may have written to a volume that is not deleted
	kept  bool   // the data was there after the volume had left the node
	pods  int

	snapshotted bool               // there is a snapshot of the volume
	size        *resource.Quantity // the least size of a volume that is created from the snapshot, if it is known
}

// try runs the steps of the volume's life. After a failed step, only the steps that delete the volume run.
func (s *scenario) try(ctx context.Context) {
	if !s.step(ctx, &s.volume, s.verb("create", "write the PersistentVolume"), s.provision) {
		return
	}
	s.restore(ctx, s.use(ctx))
	if s.options.Keep || s.stuck {
		return
	}
	if s.ending(ctx, &s.volume, "leave the node", s.leave) &&
		s.step(ctx, &s.volume, s.verb("delete", "delete the PersistentVolume"), s.remove) {
		s.step(ctx, &s.volume, "leave nothing behind", s.nothing)
	}
}

// verb returns the verb for the kind of provisioning.
func (s *scenario) verb(dynamic, static string) string {
	if s.volume.static != "" {
		return static
	}
	return dynamic
}

// use uses the volume in pods, and returns whether no step failed.
func (s *scenario) use(ctx context.Context) bool {
	if !s.step(ctx, &s.volume, s.does("write, and read back", "mount"), s.write) {
		return false
	}
	if s.volume.access != corev1.ReadWriteOncePod {
		if !s.step(ctx, &s.volume, "read from another pod of the node", s.readBeside) ||
			!s.step(ctx, &s.volume, "refuse to write where read-only", s.readOnly) {
			return false
		}
	}
	if s.volume.shared() && !s.step(ctx, &s.volume, "use on two nodes at once", s.readElsewhere) {
		return false
	}
	name := "move to another node"
	if !s.other {
		name = "leave the node, and come back"
	}
	return s.ending(ctx, &s.volume, name, s.move) && s.copies(ctx)
}

// does returns the verb for whether the test may write.
func (s *scenario) does(writing, looking string) string {
	if s.volume.writes() {
		return writing
	}
	return looking
}

// script returns the script of a pod that reads or writes.
func (s *scenario) script(file, dev, lookFile, lookDev string) string {
	switch {
	case s.volume.writes() && s.volume.block():
		return dev
	case s.volume.writes():
		return file
	case s.volume.block():
		return lookDev
	default:
		return lookFile
	}
}

func (s *scenario) reading() string {
	return s.script(checkFile, readDevice, listDirectory, sizeOfDevice)
}

// reader returns another client pod of the volume.
func (s *scenario) reader(what, script string) clientPod {
	s.pods++
	return clientPod{name: fmt.Sprintf("%s-%d-%s", s.volume.claim(), s.pods, what), volume: s.volume, script: script}
}

func (s *scenario) writer() clientPod {
	c := clientPod{name: s.volume.claim() + "-writer", volume: s.volume, holds: true}
	c.script = s.script(writeFile, writeDevice, listDirectory, sizeOfDevice)
	if s.volume.source != "" {
		c.script = s.script(changeFile, changeDevice, listDirectory, sizeOfDevice)
	}
	return c
}

// provision creates the claim, and waits until it is bound. If the claim waits for a first consumer, it creates that
// pod as well.
func (s *scenario) provision(ctx context.Context) (outcome, error) {
	if s.volume.static != "" {
		if err := s.post(ctx, s.persistentVolume(s.volume)); err != nil {
			return outcome{}, fmt.Errorf("creating the PersistentVolume: %w", err)
		}
	}
	claim := s.claim(s.volume)
	if err := s.post(ctx, claim); err != nil {
		return outcome{}, fmt.Errorf("creating the claim: %w", err)
	}
	mode := s.class().VolumeBindingMode
	if mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer && s.volume.static == "" {
		pod := s.pod(s.writer())
		if err := s.post(ctx, pod); err != nil {
			return outcome{}, fmt.Errorf("creating pod %s: %w", pod.Name, err)
		}
		s.first = pod.Name
	}
	if err := s.bound(ctx, claim); err != nil {
		return outcome{}, err
	}
	s.pv = &corev1.PersistentVolume{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, s.pv); err != nil {
		return outcome{}, fmt.Errorf("reading the PersistentVolume: %w", err)
	}
	handle := ""
	if s.pv.Spec.CSI != nil && s.pv.Spec.CSI.VolumeHandle != s.pv.Name {
		handle = ", handle " + s.pv.Spec.CSI.VolumeHandle
	}
	return passed("%s, %s%s", s.pv.Name, s.pv.Spec.Capacity.Storage(), handle)
}

// bound waits until a claim is bound, and returns it.
func (s *scenario) bound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	err := s.troubles.during(ctx, func(ctx context.Context) error {
		return await(ctx, s.client, &corev1.PersistentVolumeClaimList{}, func(seen objects) (bool, error) {
			now, _ := seen[client.ObjectKeyFromObject(claim)].(*corev1.PersistentVolumeClaim)
			if now == nil {
				return false, errors.New("the claim was deleted")
			}
			now.DeepCopyInto(claim)
			return now.Status.Phase == corev1.ClaimBound, nil
		}, only(claim.Namespace, claim.Name)...)
	})
	if errors.Is(err, errTimeout) {
		return errors.Join(fmt.Errorf("the claim is not bound: %w", err), s.lastEvent(ctx, "PersistentVolumeClaim", claim.Name))
	}
	return err
}

// write runs a pod that writes to the volume and keeps running.
func (s *scenario) write(ctx context.Context) (outcome, error) {
	writer := s.writer()
	var err error
	if s.first != "" {
		s.node, err = s.awaitPod(ctx, writer.name)
	} else {
		s.first = writer.name
		s.wrote = s.volume.static != "" && s.volume.writes()
		s.node, err = s.runPod(ctx, writer)
	}
	if err != nil {
		s.wrote = s.wrote && !s.wroteNothing(ctx)
		return outcome{}, err
	}
	if s.other, s.why, err = s.otherNode(ctx, s.node, s.pv); err != nil {
		return outcome{}, err
	}
	return passed("on %s", s.node)
}

// readBeside runs another pod on the same node that reads the data.
func (s *scenario) readBeside(ctx context.Context) (outcome, error) {
	c := s.reader("beside", s.reading())
	c.node = s.node
	_, err := s.runPod(ctx, c)
	if missed(err) && s.perPod() {
		return s.lost("a pod does not see what another pod on the same node wrote")
	}
	if err != nil {
		return outcome{}, err
	}
	return passed("")
}

// perPod reports whether the volume is staged for each pod separately.
func (s *scenario) perPod() bool {
	definition, err := s.input.definition()
	return err == nil && definition.Spec.VolumeStaging.Scope == pavv1.StagingScopePod
}

// lost is the outcome if the written data is missing, which some provisioners intend.
func (s *scenario) lost(text string) (outcome, error) {
	if s.options.RequirePersistence {
		return outcome{}, errors.New(text)
	}
	return warning("%s", text)
}

// readOnly runs a pod on the same node that asks for a read-only volume and tries to write.
func (s *scenario) readOnly(ctx context.Context) (outcome, error) {
	script := refuseFile
	switch {
	case s.volume.block() && s.volume.static != "":
		return skipped("the data on the device is not the test's")
	case s.volume.block():
		script = refuseDevice
	}
	c := s.reader("read-only", script)
	c.node, c.readOnly = s.node, true
	if _, err := s.runPod(ctx, c); err != nil {
		return outcome{}, err
	}
	return passed("")
}

// readElsewhere runs a pod on another node that reads the data while the first pod uses the volume.
func (s *scenario) readElsewhere(ctx context.Context) (outcome, error) {
	if !s.other {
		return skipped("%s", s.why)
	}
	c := s.reader("elsewhere", s.reading())
	c.not = s.node
	node, err := s.runPod(ctx, c)
	if missed(err) {
		return s.lost(fmt.Sprintf("a pod on %[2]s does not see what was written on %[1]s", s.node, node))
	}
	if err != nil {
		return outcome{}, err
	}
	return passed("on %s and %s", s.node, node)
}

// move deletes all pods of the volume, waits until it is staged on no node, and runs a pod on another node that reads
// it.
func (s *scenario) move(ctx context.Context) (outcome, error) {
	if _, err := s.leave(ctx); err != nil {
		return outcome{}, err
	}
	c := s.reader("moved", s.reading())
	if s.other {
		c.not = s.node
	}
	node, err := s.runPod(ctx, c)
	if missed(err) {
		return s.lost("the data was lost when the volume left the node")
	}
	if err != nil {
		return outcome{}, err
	}
	s.kept = true
	if !s.other {
		return passed("on %s: %s", node, s.why)
	}
	return passed("from %s to %s", s.node, node)
}

// leave deletes all pods of the volume, and waits until it is staged on no node.
func (s *scenario) leave(ctx context.Context) (outcome, error) {
	if err := s.deletePods(ctx); err != nil {
		return outcome{}, err
	}
	err := s.troubles.during(ctx, s.unstaged, undoing...)
	if err != nil {
		s.stuck = cannotUnstage(err)
		return outcome{}, err
	}
	return passed("")
}

// unstaged waits until no stage is left, except records of failures.
func (r *run) unstaged(ctx context.Context) error {
	var left []string
	err := await(ctx, r.client, &pavv1.PavStageList{}, func(seen objects) (bool, error) {
		left = nil
		for key, object := range seen {
			if stage, ok := object.(*pavv1.PavStage); ok && stage.Status.Phase != pavv1.StageFailed {
				left = append(left, key.Name)
			}
		}
		return len(left) == 0, nil
	}, client.MatchingLabels{pavv1.ProvisionerLabel: r.name})
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("PavStage %s is still there: %w", strings.Join(left, ", "), err)
	}
	return err
}

// remove deletes the claim, and waits until the volume is gone.
func (s *scenario) remove(ctx context.Context) (outcome, error) {
	if err := s.deleteClaim(ctx, s.claim(s.volume)); err != nil {
		return outcome{}, err
	}
	if s.volume.static != "" {
		if err := client.IgnoreNotFound(s.client.Delete(ctx, s.persistentVolume(s.volume))); err != nil {
			return outcome{}, fmt.Errorf("deleting the PersistentVolume: %w", err)
		}
	}
	err := s.troubles.during(ctx, func(ctx context.Context) error {
		if err := gone(ctx, s.client, &corev1.PersistentVolumeList{}, only("", s.pv.Name)...); err != nil {
			return fmt.Errorf("the PersistentVolume is still there: %w", err)
		}
		if err := gone(ctx, s.client, &pavv1.PavVolumeList{}, only("", s.pv.Name)...); err != nil {
			return fmt.Errorf("the PavVolume is still there: %w", err)
		}
		return nil
	}, undoing...)
	if err != nil {
		return outcome{}, err
	}
	return passed("")
}

// nothing waits until no object of any volume of the provisioner is left.
func (s *scenario) nothing(ctx context.Context) (outcome, error) {
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: s.name}
	for _, list := range []client.ObjectList{&pavv1.PavStageList{}, &pavv1.PavVolumeList{}, &corev1.PodList{}} {
		if err := gone(ctx, s.client, list, selected); err != nil {
			return outcome{}, fmt.Errorf("something of a %T is left: %w", list, err)
		}
	}
	return passed("no stages, no volumes, no workflow pods")
}
