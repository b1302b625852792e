package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rebootCase measures how long a client pod with many volumes is away when its node is rebooted.
func rebootCase() benchCase {
	var instant, pav []*corev1.PersistentVolumeClaim
	return benchCase{
		name: "reboot", title: "100 volumes of one client pod after a reboot, from the loss of power until the client runs again",
		figures: []figure{{"client runs again", "s"}},
		prepare: func(ctx context.Context, w *world) (err error) {
			if instant, err = w.instantClaims(ctx, many); err != nil {
				return err
			}
			pav, err = w.boundClaims(ctx, many, staging.className(immediate))
			return err
		},
		subjects: []subject{
			rebootSubject("100 emptyDirs", floor, func() []corev1.VolumeSource { return emptyDirs(many) }),
			rebootSubject("the smallest CSI driver", peer, func() []corev1.VolumeSource { return claimed(instant...) }),
			rebootSubject("PaV, a staging pod each", product, func() []corev1.VolumeSource { return claimed(pav...) }),
		},
	}
}

// instantClaims returns claims that are bound to volumes of the smallest CSI driver. They need no external-provisioner,
// which ends when the driver does, and then waits longer each time until it starts again.
func (w *world) instantClaims(ctx context.Context, count int) ([]*corev1.PersistentVolumeClaim, error) {
	class := made.className(immediate)
	if err := w.makeVolumes(ctx, w.volumes(count, class, instantDriver)); err != nil {
		return nil, err
	}
	return w.boundClaims(ctx, count, class)
}

func rebootSubject(name string, role role, volumes func() []corev1.VolumeSource) subject {
	return subject{name, role, func(ctx context.Context, w *world) ([]float64, error) {
		pod := w.client(volumes()...)
		if err := w.started(ctx, pod); err != nil {
			return nil, err
		}
		conditions, err := w.runAgain(ctx, pod)
		if err != nil {
			return nil, err
		}
		took, err := w.watch.observe(ctx, func() error {
			_, err := command(ctx, w.cluster, "node", "reboot", w.node)
			return err
		}, conditions...)
		if err != nil {
			return nil, err
		}
		return seconds(took[:1]), nil
	}}
}

// runAgain returns conditions that the pod runs again, and that what serves volumes on the node does. The latter are
// only waited for, so that the next measurement finds them as this one has found them.
func (w *world) runAgain(ctx context.Context, pod *corev1.Pod) ([]condition, error) {
	agent, err := w.readyPodOf(ctx, "pav", componentLabel, nodeAgent)
	if err != nil {
		return nil, err
	}
	driver, err := w.readyPodOf(ctx, "pav-bench-external", peerLabel, "driver")
	if err != nil {
		return nil, err
	}
	var conditions []condition
	for _, p := range []*corev1.Pod{pod, agent, driver} {
		if err := w.kube.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return nil, err
		}
		conditions = append(conditions, runningAgain(p, p.Status.ContainerStatuses[0].ContainerID))
	}
	return conditions, nil
}
