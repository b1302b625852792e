package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// cleanUp removes everything that the test created, even after ctx has ended, and reports what could not be removed.
func (r *run) cleanUp(ctx context.Context) {
	if len(r.created) == 0 {
		return
	}
	if r.options.Keep {
		r.progress.heading("Kept. To remove everything: " + r.removal())
		return
	}
	if ctx.Err() != nil {
		r.progress.heading("Interrupted: cleaning up. Interrupt again to leave the rest as it is: " + r.removal())
	}
	r.ending(context.WithoutCancel(ctx), nil, "clean up", func(ctx context.Context) (outcome, error) {
		if r.hasCopy() {
			if err := r.removeVolumes(ctx); err != nil {
				r.leftVolumes(ctx)
				return outcome{}, err
			}
		}
		return r.removeRest(ctx)
	})
}

// removal is the command that removes everything that the test created, if nothing blocks it.
// The provisioner is deleted after the claims, and the objects that it may need after the provisioner.
func (r *run) removal() string {
	var users, copied, others []string
	for _, object := range r.created {
		target := strings.ToLower(kindOf(object)) + "/" + object.GetName()
		switch {
		case object.GetNamespace() == r.name: // It is deleted with the namespace.
		case object.GetNamespace() != "":
			others = append(others, "kubectl delete -n "+object.GetNamespace()+" "+target)
		case object.GetName() != r.name:
			others = append(others, "kubectl delete "+target)
		case kindOf(object) == "PavProvisioner":
			copied = append(copied, "kubectl delete "+target)
		default:
			users = append(users, target)
		}
	}
	var commands []string
	if len(users) > 0 {
		commands = append(commands, "kubectl delete "+strings.Join(users, " "))
	}
	slices.Reverse(others)
	return strings.Join(slices.Concat(commands, copied, others), " && ")
}

// removeVolumes deletes all pods, claims and volumes of the test. It returns when a workflow fails once more, as PaV
// would retry forever.
func (r *run) removeVolumes(ctx context.Context) error {
	if err := r.deletePods(ctx); err != nil {
		return err
	}
	// Snapshots that are being made hold their claims, and claims that are being provisioned hold their snapshots.
	if err := r.deleteSnapshots(ctx); err != nil {
		return err
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, client.InNamespace(r.name), client.MatchingLabels(r.labels())); err != nil {
		return fmt.Errorf("listing the test's claims: %w", err)
	}
	for i := range claims.Items {
		if err := r.deleteClaim(ctx, &claims.Items[i]); err != nil {
			return err
		}
	}
	if err := r.client.DeleteAllOf(ctx, &corev1.PersistentVolume{}, client.MatchingLabels(r.labels())); err != nil {
		return fmt.Errorf("deleting the test's PersistentVolumes: %w", err)
	}
	if err := r.removeBuckets(ctx); err != nil {
		return err
	}
	err := r.troubles.during(ctx, func(ctx context.Context) error {
		if err := r.unstaged(ctx); err != nil {
			return err
		}
		return gone(ctx, r.client, &pavv1.PavVolumeList{}, client.MatchingLabels{pavv1.ProvisionerLabel: r.name})
	}, undoing...)
	if err != nil {
		return err
	}
	return r.awaitSnapshots(ctx)
}

// deletePods deletes all pods of the test, and waits until they are gone.
func (r *run) deletePods(ctx context.Context) error {
	selected := []client.DeleteAllOfOption{client.InNamespace(r.name), client.MatchingLabels(r.labels())}
	if err := r.client.DeleteAllOf(ctx, &corev1.Pod{}, selected...); err != nil {
		return fmt.Errorf("deleting the test's pods: %w", err)
	}
	err := gone(ctx, r.client, &corev1.PodList{}, client.InNamespace(r.name), client.MatchingLabels(r.labels()))
	if err != nil {
		return fmt.Errorf("a pod that was deleted is still there: %w", err)
	}
	return nil
}

// deleteClaim deletes a claim, and waits until it is gone.
func (r *run) deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := client.IgnoreNotFound(r.client.Delete(ctx, claim)); err != nil {
		return fmt.Errorf("deleting the claim: %w", err)
	}
	if err := gone(ctx, r.client, &corev1.PersistentVolumeClaimList{}, only(claim.Namespace, claim.Name)...); err != nil {
		return fmt.Errorf("the claim that was deleted is still there: %w", err)
	}
	return nil
}

// removeRest deletes the objects that do not belong to a volume, the newest first, and waits until they are gone.
func (r *run) removeRest(ctx context.Context) (outcome, error) {
	var errs []error
	slices.Reverse(r.created)
	for _, object := range r.created {
		uid := object.GetUID()
		if err := client.IgnoreNotFound(r.client.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", describeObject(object), err))
			r.left(object, err.Error(), r.deletion(object))
		}
	}
	for _, object := range r.created {
		if err := r.awaitGone(ctx, object); err != nil {
			errs = append(errs, fmt.Errorf("%s is still there: %w", describeObject(object), err))
			r.left(object, err.Error(), r.deletion(object))
		}
	}
	if len(errs) > 0 {
		return outcome{}, errors.Join(errs...)
	}
	return passed("")
}

// awaitGone waits until an object of any kind is gone.
func (r *run) awaitGone(ctx context.Context, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, r.client.Scheme())
	if err != nil {
		return fmt.Errorf("telling its kind: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return await(ctx, r.client, list, func(seen objects) (bool, error) {
		present := seen[client.ObjectKeyFromObject(object)]
		return present == nil || present.GetUID() != object.GetUID(), nil
	}, only(object.GetNamespace(), object.GetName())...)
}

// left records that an object could not be removed.
func (r *run) left(object client.Object, why string, commands ...string) {
	r.report.Left = append(r.report.Left, Left{Kind: kindOf(object), Namespace: object.GetNamespace(), Name: object.GetName(), Why: why, Commands: commands})
}

// deletion is the command that deletes an object.
func (r *run) deletion(object client.Object) string {
	command := "kubectl delete " + strings.ToLower(kindOf(object)) + " " + object.GetName()
	if object.GetNamespace() != "" {
		command += " -n " + object.GetNamespace()
	}
	return command
}

// describeObject names an object for messages, its kind first.
func describeObject(object client.Object) string {
	return kindOf(object) + " " + object.GetName()
}

func kindOf(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", object), "*")
		_, kind, _ = strings.Cut(kind, ".")
	}
	return kind
}
