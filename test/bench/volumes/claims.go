package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimCases are the cases without client pods.
func claimCases() []benchCase {
	return []benchCase{
		{
			name: "bound", title: "Claim until Bound, binding mode Immediate", warm: true,
			figures: []figure{{"claim is bound", "s"}},
			subjects: []subject{
				boundSubject(nameMade, floor, made, 1),
				boundSubject(nameExternal, peer, external, 1),
				boundSubject("PaV, no pod", product, staging, 1),
				boundSubject("PaV, creation pod", product, both, 1),
				boundSubject("PaV, creation pod with /pav/ready", product, bothReady, 1),
			},
		},
		{
			name: "bound-100", title: "100 claims at once until all are Bound, binding mode Immediate", warm: true,
			figures: []figure{{"all claims are bound", "s"}},
			subjects: []subject{
				boundSubject(nameMade, floor, made, many),
				boundSubject(nameExternal, peer, external, many),
				boundSubject("PaV, no pod", product, staging, many),
			},
		},
		{
			name: "bound-100-pods", title: "100 claims at once until all are Bound, with a creation pod each",
			figures: []figure{{"all claims are bound", "s"}},
			subjects: []subject{
				{name: "100 pods that run true, until all have succeeded", role: floor, measure: podsSucceed},
				boundSubject("PaV, creation pod", product, both, many),
				boundSubject("PaV, creation pod with /pav/ready", product, bothReady, many),
			},
		},
		{
			name: "grown", title: "Claim that requests more until its status has that, while no pod uses it", warm: true,
			figures: []figure{{"claim has grown", "s"}},
			subjects: []subject{
				{name: "a pod that runs true, until it has succeeded", role: floor, measure: podSucceeds},
				grownSubject("PaV, no pod", staging),
				grownSubject("PaV, expansion pod", both),
			},
		},
	}
}

// grownSubject measures from the request of a bound claim for more until its status has that capacity.
func grownSubject(name string, p provider) subject {
	return subject{name, product, func(ctx context.Context, w *world) ([]float64, error) {
		claim := w.claims(1, p.className(immediate))[0]
		if _, err := w.watch.observe(ctx, func() error { return w.create(ctx, claim) }, bound(claim)); err != nil {
			return nil, err
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"resources": {"requests": {"storage": "2Mi"}}}}`))
		took, err := w.watch.observe(ctx, func() error { return w.kube.Patch(ctx, claim, patch) }, hasCapacity(claim, "2Mi"))
		return seconds(took), err
	}}
}

// podSucceeds measures from the creation of a pod that does nothing until it has succeeded.
func podSucceeds(ctx context.Context, w *world) ([]float64, error) {
	pod := w.client()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].Command = []string{"true"}
	took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pod) }, succeeded(pod))
	return seconds(took), err
}

// many is the number of claims or volumes where there are many at once.
const many = 100

// boundSubject measures from the creation of claims until all of them are bound.
func boundSubject(name string, role role, p provider, count int) subject {
	return subject{name, role, func(ctx context.Context, w *world) ([]float64, error) {
		class := p.className(immediate)
		if p == made {
			if err := w.makeVolumes(ctx, w.volumes(count, class, "")); err != nil {
				return nil, err
			}
		}
		claims := w.claims(count, class)
		took, err := w.watch.observe(ctx, func() error { return w.create(ctx, objects(claims)...) }, bound(claims...))
		return seconds(took), err
	}}
}

// podsSucceed measures from the creation of many pods that do nothing until all of them have succeeded.
func podsSucceed(ctx context.Context, w *world) ([]float64, error) {
	var pods []client.Object
	var conditions []condition
	for range many {
		pod := w.client()
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0].Command = []string{"true"}
		pods, conditions = append(pods, pod), append(conditions, succeeded(pod))
	}
	took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pods...) }, all(conditions))
	return seconds(took), err
}
