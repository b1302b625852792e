package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contestant is a provider as a subject.
type contestant struct {
	name string
	role role
	provider
}

// contestants are those with clients, besides the floor. local-path-provisioner has only the mode WaitForFirstConsumer.
func contestants(mode storagev1.VolumeBindingMode) []contestant {
	found := []contestant{{nameMade, reference, made}, {nameExternal, peer, external}}
	if mode == wait {
		found = append(found, contestant{nameLocalPath, peer, localPath})
	}
	return append(found,
		contestant{"PaV, staging pod", product, staging},
		contestant{"PaV, staging pod with /pav/ready", product, stagingReady},
		contestant{"PaV, creation and staging pods", product, both},
		contestant{"PaV, creation and staging pods with /pav/ready", product, bothReady})
}

// clientCases are the cases with a client pod.
func clientCases() []benchCase {
	var found []benchCase
	for _, c := range []struct {
		name, mode string
		of         storagev1.VolumeBindingMode
	}{{"running", "Immediate", immediate}, {"running-wait", "WaitForFirstConsumer", wait}} {
		of := benchCase{
			name: c.name, title: "Claim and client pod until the client runs, binding mode " + c.mode, warm: true,
			figures:  []figure{{"client runs", "s"}},
			subjects: []subject{emptyDirSubject()},
		}
		for _, other := range contestants(c.of) {
			of.subjects = append(of.subjects, other.running(c.of))
		}
		found = append(found, of)
	}
	return append(found, firstCase(), secondCase(), deleteCase())
}

// emptyDirSubject measures a client pod without a claim.
func emptyDirSubject() subject {
	return subject{nameEmptyDir, floor, func(ctx context.Context, w *world) ([]float64, error) {
		pod := w.client(emptyDirs(1)...)
		took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pod) }, running(pod))
		return seconds(took), err
	}}
}

// running measures from the creation of a claim and a client pod until the pod runs.
func (c contestant) running(mode storagev1.VolumeBindingMode) subject {
	return subject{c.name, c.role, func(ctx context.Context, w *world) ([]float64, error) {
		claim, err := w.claimOf(ctx, c.provider, mode)
		if err != nil {
			return nil, err
		}
		pod := w.client(claimed(claim)...)
		took, err := w.watch.observe(ctx, func() error {
			if err := w.create(ctx, claim); err != nil {
				return err
			}
			return w.create(ctx, pod)
		}, running(pod))
		return seconds(took), err
	}}
}

// claimOf returns a claim that is not created yet. If its volume has to exist before, it does.
func (w *world) claimOf(ctx context.Context, p provider, mode storagev1.VolumeBindingMode) (*corev1.PersistentVolumeClaim, error) {
	class := p.className(mode)
	if p == made {
		if err := w.makeVolumes(ctx, w.volumes(1, class, "")); err != nil {
			return nil, err
		}
	}
	return w.claims(1, class)[0], nil
}

// used creates a claim and a client pod, and waits until the pod runs.
func (w *world) used(ctx context.Context, p provider) (*corev1.PersistentVolumeClaim, *corev1.Pod, error) {
	claim, err := w.claimOf(ctx, p, wait)
	if err != nil {
		return nil, nil, err
	}
	if err := w.create(ctx, claim); err != nil {
		return nil, nil, err
	}
	pod := w.client(claimed(claim)...)
	return claim, pod, w.started(ctx, pod)
}

// firstCase measures the first client of a volume that is bound already.
func firstCase() benchCase {
	found := benchCase{
		name: "first", title: "First client pod of a bound volume, until it runs", warm: true,
		figures: []figure{{"client runs", "s"}}, subjects: []subject{emptyDirSubject()},
	}
	for _, c := range []contestant{
		{nameMade, reference, made}, {nameExternal, peer, external}, {"PaV, staging pod", product, staging},
		{"PaV, staging pod with /pav/ready", product, stagingReady},
	} {
		found.subjects = append(found.subjects, subject{c.name, c.role, func(ctx context.Context, w *world) ([]float64, error) {
			claim, err := w.claimOf(ctx, c.provider, immediate)
			if err != nil {
				return nil, err
			}
			if _, err := w.watch.observe(ctx, func() error { return w.create(ctx, claim) }, bound(claim)); err != nil {
				return nil, err
			}
			pod := w.client(claimed(claim)...)
			took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pod) }, running(pod))
			return seconds(took), err
		}})
	}
	return found
}

// secondCase measures a client of a volume that another pod of the node uses.
func secondCase() benchCase {
	found := benchCase{
		name: "second", title: "Second client pod of a volume on a node, until it runs", warm: true,
		figures: []figure{{"client runs", "s"}}, subjects: []subject{emptyDirSubject()},
	}
	// PaV does the same for all volumes then: one provisioner is enough.
	held := []contestant{{nameMade, reference, made}, {nameExternal, peer, external}, {nameLocalPath, peer, localPath}, {"PaV", product, staging}}
	claims := make([]*corev1.PersistentVolumeClaim, len(held))
	for i, c := range held {
		found.subjects = append(found.subjects, subject{c.name, c.role, func(ctx context.Context, w *world) ([]float64, error) {
			pod := w.client(claimed(claims[i])...)
			took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pod) }, running(pod))
			return seconds(took), err
		}})
	}
	found.prepare = func(ctx context.Context, w *world) (err error) {
		for i, c := range held {
			if claims[i], _, err = w.used(ctx, c.provider); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		return nil
	}
	return found
}

// deleteCase measures from the deletion of a client pod and its claim until the pod is gone, and until the claim and the
// PersistentVolume are gone.
func deleteCase() benchCase {
	found := benchCase{
		name: "delete", title: "Client pod and claim, from their deletion until they are gone", warm: true,
		figures: []figure{{"client is gone", "s"}, {"volume is gone", "s"}},
	}
	for _, c := range contestants(wait) {
		if c.provider == made {
			c.role = floor
		}
		found.subjects = append(found.subjects, subject{c.name, c.role, func(ctx context.Context, w *world) ([]float64, error) {
			return w.deleted(ctx, c.provider)
		}})
	}
	return found
}

func (w *world) deleted(ctx context.Context, p provider) ([]float64, error) {
	claim, pod, err := w.used(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return nil, err
	}
	volume := &corev1.PersistentVolume{}
	volume.Name = claim.Spec.VolumeName
	objects := []client.Object{pod, claim}
	if p == made {
		objects = append(objects, volume) // Its reclaim policy is Retain: nobody else deletes it.
	}
	took, err := w.watch.observe(ctx, func() error { return w.delete(ctx, objects...) }, gone(pod), gone(claim, volume))
	return seconds(took), err
}
