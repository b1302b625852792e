package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
)

// definition returns the evaluator of a provisioner's templates for a volume. Volume is the object as the API server
// returned it.
func (s *Stager) definition(provisioner *pavv1.PavProvisioner, volume map[string]any) podplan.StageRequest {
	return podplan.StageRequest{
		Provisioner: provisioner, Templates: s.templates, GetPVC: s.getPVC, Defaults: s.config.PodDefaults,
		Foreign: func(_ context.Context, name, namespace string, allowed bool) {
			s.reportLookup(provisioner.Name, volume, name, namespace, allowed)
		},
	}
}

// reportLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have
// chosen the namespace.
func (s *Stager) reportLookup(provisioner string, volume map[string]any, name, namespace string, allowed bool) {
	of, own := podplan.TextAt(volume, "metadata", "name"), podplan.TextAt(volume, "spec", "claimRef", "namespace")
	message := template.ForeignLookup(provisioner, name, namespace, own, allowed)
	if due, _ := s.repeats.Due(of, message, s.now()); !due {
		return
	}
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: of, UID: types.UID(uid(volume))}
	s.events.Event(ref, eventType, "ForeignClaim", observability.Clip(message, observability.MaxNote))
}

// objects returns the objects that the templates of staging and unstaging see. If the volume or the claim is gone, or
// was replaced, it is the copy in the PavStage, which the webhook that checks the pod uses as well. Bound reports
// whether both are the real objects, and are bound to each other.
func (t *task) objects(ctx context.Context) (o podplan.StageObjects, bound bool, err error) {
	spec := &t.stage.Spec
	kept, err := podplan.KeptObjects(t.stage)
	if err != nil {
		return o, false, err
	}
	var live podplan.StageObjects
	err = t.together(ctx,
		func(ctx context.Context) (err error) {
			live.Volume, err = t.lookUp(ctx, "PersistentVolume", client.ObjectKey{Name: spec.VolumeName})
			return err
		},
		func(ctx context.Context) (err error) {
			live.Claim, err = t.lookUp(ctx, "PersistentVolumeClaim", client.ObjectKey{Namespace: spec.ClaimRef.Namespace, Name: spec.ClaimRef.Name})
			return err
		},
		func(ctx context.Context) error {
			node, err := t.read(ctx, "Node", client.ObjectKey{Name: spec.NodeName}, nil)
			if err != nil {
				return err
			}
			live.Node, err = object(node)
			return err
		})
	if err != nil {
		return o, false, err
	}
	o = podplan.CurrentObjects(t.stage, live, kept)
	if o.Provisioned == nil {
		// A PavStage of an earlier version has no copy.
		if o.Provisioned, err = t.provisionedClaim(ctx, o.Volume); err != nil {
			return o, false, err
		}
	}
	exist := podplan.IsVolume(t.stage, live.Volume, kept.Volume) && podplan.IsSame(live.Claim, kept.Claim)
	return o, exist && areBound(o.Volume, o.Claim), nil
}

// current returns the definition, and what objects returns.
func (t *task) current(ctx context.Context) (provisioner *pavv1.PavProvisioner, o podplan.StageObjects, bound bool, err error) {
	err = t.together(ctx,
		func(ctx context.Context) (err error) {
			provisioner, err = t.liveProvisioner(ctx)
			return err
		},
		func(ctx context.Context) (err error) {
			o, bound, err = t.objects(ctx)
			return err
		})
	return provisioner, o, bound, err
}

// provisionedClaim returns the claim that the controller agent recorded when it provisioned the volume, or nil.
func (t *task) provisionedClaim(ctx context.Context, volume map[string]any) (map[string]any, error) {
	pv := &corev1.PersistentVolume{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(volume, pv); err != nil {
		return nil, fmt.Errorf("reading persistent volume %q: %w", t.stage.Spec.VolumeName, err)
	}
	record, err := t.recordOf(ctx, pv)
	if err != nil || record == nil {
		return nil, err
	}
	claim := podplan.ProvisionedClaim(record, t.Driver, t.Handle)
	if claim == nil {
		return nil, nil
	}
	return object(*claim)
}

// recordOf returns the PavVolume of a volume; nil if there is none, or it is that of another volume. A static volume has one if it can
// change, or be read.
func (t *task) recordOf(ctx context.Context, volume *corev1.PersistentVolume) (*pavv1.PavVolume, error) {
	record := &pavv1.PavVolume{}
	if err := t.client.Get(ctx, client.ObjectKey{Name: volume.Name}, record); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("getting PavVolume %q: %w", volume.Name, err)
	}
	if record.Spec.Provisioner != t.Driver || record.Status.Handle != "" && record.Status.Handle != t.Handle {
		return nil, nil
	}
	return record, nil
}

// areBound reports whether a PersistentVolume and a claim are bound to each other, and the volume may be used: one
// that is Released or Failed is being deleted, or was.
func areBound(volume, claim map[string]any) bool {
	text := podplan.TextAt
	switch corev1.PersistentVolumePhase(text(volume, "status", "phase")) {
	case corev1.VolumeReleased, corev1.VolumeFailed:
		return false
	default:
		return text(volume, "spec", "claimRef", "uid") == uid(claim) && text(claim, "spec", "volumeName") == text(volume, "metadata", "name")
	}
}

// lookUp returns an object, or nil if there is none.
func (t *task) lookUp(ctx context.Context, kind string, key client.ObjectKey) (map[string]any, error) {
	raw, err := t.read(ctx, kind, key, nil)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object(raw)
}

func uid(object map[string]any) string {
	return podplan.TextAt(object, "metadata", "uid")
}

func object(raw apiextensionsv1.JSON) (map[string]any, error) {
	value, err := template.Decode(raw)
	if err != nil {
		return nil, err
	}
	return template.Object("", value)
}

// getPVC serves the template function get_pvc.
func (s *Stager) getPVC(ctx context.Context, name, namespace string) (map[string]any, error) {
	raw, err := s.read(ctx, "PersistentVolumeClaim", client.ObjectKey{Namespace: namespace, Name: name}, nil)
	if apierrors.IsNotFound(err) {
		return nil, template.ErrNoClaim
	}
	if err != nil {
		return nil, err
	}
	return object(raw)
}
