package main

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{
			name: "copied", title: "VolumeSnapshot until it is ready, and claim of a copy until Bound, with a pod each", warm: true,
			figures: []figure{{"it is there", "s"}},
			subjects: []subject{
				{name: "a pod that runs true, until it has succeeded", role: floor, measure: podSucceeds},
				{name: "PaV, a snapshot", role: product, measure: snapshotted},
				{name: "PaV, a restore", role: product, measure: restored},
				{name: "PaV, a clone", role: product, measure: cloned},
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

// snapshotted measures from the request of a snapshot of a bound claim until it is ready to use. That includes what the
// snapshot-controller does before and after the driver.
func snapshotted(ctx context.Context, w *world) ([]float64, error) {
	_, took, err := w.snapshot(ctx)
	return took, err
}

// snapshot makes a volume and a snapshot of it, and returns how long the snapshot took.
func (w *world) snapshot(ctx context.Context) (*snapshotv1.VolumeSnapshot, []float64, error) {
	claims, err := w.boundClaims(ctx, 1, both.className(immediate))
	if err != nil {
		return nil, nil, err
	}
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.named("snapshot")},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claims[0].Name}, VolumeSnapshotClassName: new(both.driver),
		},
	}
	took, err := w.watch.observe(ctx, func() error { return w.create(ctx, snapshot) }, usable(snapshot))
	return snapshot, seconds(took), err
}

// restored measures from the request of a volume from a snapshot until the claim is bound.
func restored(ctx context.Context, w *world) ([]float64, error) {
	snapshot, _, err := w.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return w.boundCopy(ctx, &corev1.TypedObjectReference{APIGroup: new(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: snapshot.Name})
}

// cloned measures from the request of a clone of a bound claim until it is bound, too.
func cloned(ctx context.Context, w *world) ([]float64, error) {
	claims, err := w.boundClaims(ctx, 1, both.className(immediate))
	if err != nil {
		return nil, err
	}
	return w.boundCopy(ctx, &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: claims[0].Name})
}

// boundCopy measures from the creation of a claim with a source until it is bound.
func (w *world) boundCopy(ctx context.Context, source *corev1.TypedObjectReference) ([]float64, error) {
	claim := w.claims(1, both.className(immediate))[0]
	claim.Spec.DataSourceRef = source
	took, err := w.watch.observe(ctx, func() error { return w.create(ctx, claim) }, bound(claim))
	return seconds(took), err
}

// podSucceeds measures from the creation of a pod that does nothing until it has succeeded.
func podSucceeds(ctx context.Context, w *world) ([]float64, error) {
	pod := w.endingPod()
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
		pod := w.endingPod()
		pods, conditions = append(pods, pod), append(conditions, succeeded(pod))
	}
	took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pods...) }, all(conditions))
	return seconds(took), err
}
