package render

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// page is the page size of lists: only so many volumes are in memory at a time.
	page = 100

	// maxNodes is the maximum number of Nodes that are kept, so that each is not read for each of its volumes.
	maxNodes = 100
)

// cluster reads the volumes of a provisioner.
type cluster struct {
	client.Reader

	provisioner string

	// nodes are the Nodes that were read, by name or selector; nil for one that does not exist.
	nodes map[string]map[string]any

	// notes say what was made up, and unbound counts PersistentVolumes that are bound to no claim.
	notes   []string
	unbound int
}

// each calls visit for each volume, or with the error of reading it. It ends with the first error of visit or of a list.
func (c *cluster) each(ctx context.Context, visit func(*existing, error) error) error {
	recorded := map[string]bool{}
	mine := client.MatchingLabels{pavv1.ProvisionerLabel: c.provisioner}
	err := pages(ctx, c, "pavvolumes", newPavVolumes, func(records *pavv1.PavVolumeList) error {
		for i := range records.Items {
			record := &records.Items[i]
			if record.Spec.Static {
				continue // It is rendered from its PersistentVolume.
			}
			recorded[record.Name] = true
			if record.Status.Step == pavv1.StepDeleted {
				continue // Only objects are left.
			}
			v := &existing{name: record.Name, record: record, lookUp: c.getPVC()}
			v.claim = record.Spec.ClaimRef.Namespace + "/" + record.Spec.ClaimRef.Name
			if err := visit(v, c.fill(ctx, v)); err != nil {
				return err
			}
		}
		return nil
	}, mine)
	if err != nil {
		return err
	}
	return pages(ctx, c, "persistentvolumes", newPVs, func(volumes *unstructured.UnstructuredList) error {
		for _, item := range volumes.Items {
			volume := item.Object
			if text(volume, "spec", "csi", "driver") != c.provisioner || recorded[item.GetName()] {
				continue
			}
			v := &existing{name: item.GetName(), lookUp: c.getPVC(), static: item.GetAnnotations()[protocol.ProvisionedBy] != c.provisioner}
			if namespace := text(volume, "spec", "claimRef", "namespace"); namespace != "" {
				v.claim = namespace + "/" + text(volume, "spec", "claimRef", "name")
			}
			if err := c.visitPV(ctx, v, volume, visit); err != nil {
				return err
			}
		}
		return nil
	})
}

// visitPV calls visit for a PersistentVolume without a PavVolume, if a node agent can stage or unstage it.
func (c *cluster) visitPV(ctx context.Context, v *existing, volume map[string]any, visit func(*existing, error) error) error {
	clean(volume)
	err := c.fillStaging(ctx, v, volume)
	if err == nil && v.staging.Volume == nil {
		c.unbound++
		return nil
	}
	return visit(v, err)
}

func newPavVolumes() *pavv1.PavVolumeList { return &pavv1.PavVolumeList{} }

func newStages() *pavv1.PavStageList { return &pavv1.PavStageList{} }

func newPVs() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeList"))
	return list
}

// pages reads a list page by page. Each page is decoded into a new list: an old one would keep fields of its objects.
func pages[L client.ObjectList](
	ctx context.Context, c *cluster, resource string, newList func() L, visit func(L) error, options ...client.ListOption,
) error {
	token := ""
	for {
		list := newList()
		err := c.List(ctx, list, append(options, client.Limit(page), client.Continue(token))...)
		if next := continuation(err); next != "" {
			token = next
			continue
		}
		if err != nil {
			return needs("list", resource, "", err)
		}
		if err := visit(list); err != nil {
			return err
		}
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

// continuation returns the token with which a list continues that took so long that its state is not kept any more: the rest
// is as it is now.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// needs returns an error that says which right the user needs, if that is missing.
func needs(verb, resource, namespace string, err error) error {
	where := ""
	if namespace != "" {
		where = fmt.Sprintf(" in namespace %q", namespace)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you need the right to %s %s%s: %w", verb, resource, where, err)
	}
	return fmt.Errorf("cannot %s %s%s: %w", verb, resource, where, err)
}

// fill reads the objects of a volume that has a record.
func (c *cluster) fill(ctx context.Context, v *existing) error {
	record := v.record
	var err error
	if v.class, err = podplan.RecordedClass(record); err != nil {
		return err
	}
	if v.owner, err = podplan.RecordedClaim(record); err != nil {
		return err
	}
	live, err := v.getClaim(ctx, record.Spec.ClaimRef.Namespace, record.Spec.ClaimRef.Name)
	if err != nil {
		return err
	}
	if text(live, "metadata", "uid") == string(record.Spec.ClaimRef.UID) {
		v.owner = live
	}
	v.request = v.owner
	if phase := record.Status.Phase; phase != "" && phase != pavv1.VolumePending {
		if v.request, err = podplan.RecordedProvisionedClaim(record); err != nil {
			return err
		}
	}
	if v.node, err = c.node(ctx, record.Status.SelectedNode); err != nil {
		return err
	}
	volume, err := c.get(ctx, "persistentvolumes", corev1.SchemeGroupVersion.WithKind("PersistentVolume"), client.ObjectKey{Name: v.name})
	if err != nil {
		return err
	}
	if text(volume, "spec", "csi", "driver") != c.provisioner {
		volume = nil
	}
	return c.fillStaging(ctx, v, volume)
}

// fillStaging reads the objects with which a node agent stages and unstages a volume. Volume is its PersistentVolume; nil if
// there is none.
func (c *cluster) fillStaging(ctx context.Context, v *existing, volume map[string]any) error {
	live := podplan.StageObjects{Volume: volume}
	var err error
	if podplan.ProvisionedClaim(v.record, c.provisioner, text(volume, "spec", "csi", "volumeHandle")) != nil {
		if live.Provisioned, err = podplan.RecordedProvisionedClaim(v.record); err != nil {
			return err
		}
	}
	if v.stage, err = c.stage(ctx, v.name); err != nil {
		return err
	}
	bound := func(field string) string { return text(volume, "spec", "claimRef", field) }
	namespace, name, uid := bound("namespace"), bound("name"), bound("uid")
	if v.stage != nil {
		ref := v.stage.Spec.ClaimRef
		namespace, name, uid = ref.Namespace, ref.Name, string(ref.UID)
	}
	if live.Claim, err = v.getClaim(ctx, namespace, name); err != nil {
		return err
	}
	if live.Claim != nil && uid != "" && text(live.Claim, "metadata", "uid") != uid {
		live.Claim = nil
	}
	if live.Node, err = c.nodeOf(ctx, v, volume); err != nil {
		return err
	}
	if v.stage != nil {
		kept, err := podplan.KeptObjects(v.stage)
		if err != nil {
			return err
		}
		v.staging = podplan.CurrentObjects(v.stage, live, kept)
	} else if live.Volume != nil && live.Claim != nil {
		v.staging = live
	}
	return nil
}

// stage returns a PavStage of the volume, of the first node that has one; nil if there is none.
func (c *cluster) stage(ctx context.Context, volume string) (*pavv1.PavStage, error) {
	var first *pavv1.PavStage
	place := func(s *pavv1.PavStage) string { return s.Spec.NodeName + " " + s.Name }
	err := pages(ctx, c, "pavstages", newStages, func(stages *pavv1.PavStageList) error {
		for i := range stages.Items {
			s := &stages.Items[i]
			reserves := s.Spec.Scope == pavv1.StagingScopePod && s.Spec.Client == nil // such a stage has no pods
			if s.Spec.VolumeName == volume && !reserves && (first == nil || place(s) < place(first)) {
				first = s.DeepCopy()
			}
		}
		return nil
	}, client.MatchingLabels{pavv1.ProvisionerLabel: c.provisioner, pavv1.VolumeLabel: workflow.Hash(volume)})
	if apierrors.IsForbidden(err) {
		c.note("you may not list pavstages: volumes are rendered as if they were staged nowhere")
		return nil, nil
	}
	return first, err
}

func (c *cluster) note(text string) {
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// getPVC returns the template function get_pvc for one volume, for which both definitions see the same claims.
func (c *cluster) getPVC() template.GetPVC {
	known := map[client.ObjectKey]map[string]any{}
	return func(ctx context.Context, name, namespace string) (map[string]any, error) {
		// The name may be any text of a tenant. The client rejects invalid names before it asks the API server.
		for _, part := range []string{name, namespace} {
			if part == "" || len(content.IsPathSegmentName(part)) > 0 {
				return nil, template.ErrNoClaim
			}
		}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		claim, read := known[key]
		if !read {
			var err error
			if claim, err = c.get(ctx, "persistentvolumeclaims", corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), key); err != nil {
				return nil, err
			}
			known[key] = claim
		}
		if claim == nil {
			return nil, template.ErrNoClaim
		}
		return claim, nil
	}
}

// getClaim returns a claim, or nil if there is none.
func (v *existing) getClaim(ctx context.Context, namespace, name string) (map[string]any, error) {
	claim, err := v.lookUp(ctx, name, namespace)
	if errors.Is(err, template.ErrNoClaim) {
		return nil, nil
	}
	return claim, err
}

// get returns an object as the agents read it, or nil if there is none.
func (c *cluster) get(ctx context.Context, resource string, kind schema.GroupVersionKind, key client.ObjectKey) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := c.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, needs("get", resource, key.Namespace, err)
	}
	clean(object.Object)
	return object.Object, nil
}

// clean removes what the agents do not show to templates.
func clean(object map[string]any) {
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
}
