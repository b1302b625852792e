package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// The phases, in the order of a volume's life.
const (
	validation   = "validation"
	creation     = "creation"
	expansion    = "expansion"
	modification = "modification"
	deletion     = "deletion"
	staging      = "staging"
	unstaging    = "unstaging"

	nodeExpansion    = "node-expansion"
	snapshotCreation = "snapshot-creation"
	snapshotDeletion = "snapshot-deletion"
)

var phases = []string{
	validation, creation, expansion, modification, snapshotCreation, snapshotDeletion, deletion, staging, nodeExpansion, unstaging,
	bucketValidation, bucketCreation, bucketUpdate, accessGrant, accessRevocation, bucketDeletion,
}

// errNoAttributesClass is why a volume is not modified.
var errNoAttributesClass = errors.New("no VolumeAttributesClass of the PavProvisioner was given")

// Result is the output of -o.
type Result struct {
	Provisioner string  `json:"provisioner"`
	Phases      []Phase `json:"phases"`
}

// Phase is the rendering of one phase of a volume's life.
type Phase struct {
	Phase string `json:"phase"`

	// Handle, Capacity and AccessibleTopology are those of the volume after creation.
	Handle             string                 `json:"handle,omitempty"`
	Capacity           string                 `json:"capacity,omitempty"`
	AccessibleTopology []pavv1.TopologyLabels `json:"accessibleTopology,omitempty"`

	// Notes say which of these only the pod can determine.
	Notes []string `json:"notes,omitempty"`

	// Pod is the pod that is created; nil if the definition has none.
	Pod map[string]any `json:"pod,omitempty"`

	// Refusal is why the volume is refused, or "".
	Refusal string `json:"-"`
}

// failure is why a phase cannot be rendered.
type failure struct {
	phase string
	err   error
}

// rendering renders a definition.
type rendering struct {
	*objects
	provisioner *pavv1.PavProvisioner
	templates   *template.Evaluator
	options     *options

	// ledger is the PavVolume, pods is the number of pods that it has had, and made is the volume after creation.
	ledger *pavv1.PavVolume
	pods   int32
	made   podplan.VolumeOutcome

	// provisioned is the claim as it was when the volume was created, and staged the PavStage of a volume that is staged;
	// nil if there is none.
	provisioned map[string]any
	staged      *pavv1.PavStage

	result   Result
	failures []failure
	unshown  []failure // of creation, if that is not to be shown
}

// render returns the phases that a definition renders for the objects, and the errors of phases that cannot be
// rendered. It changes the objects, which must not be used afterwards.
func (o *options) render(ctx context.Context, p *pavv1.PavProvisioner, c *objects) *rendering {
	r := &rendering{objects: c, provisioner: p, templates: template.NewEvaluator(o.limits), options: o, result: Result{Provisioner: p.Name}}
	if r.claim != nil {
		r.volumes(ctx)
	}
	r.buckets(ctx)
	slices.SortStableFunc(r.result.Phases, func(a, b Phase) int {
		return slices.Index(phases, a.Phase) - slices.Index(phases, b.Phase)
	})
	return r
}

// volumes renders the life of a volume.
func (r *rendering) volumes(ctx context.Context) {
	if r.static {
		r.bind(r.volume)
		r.validateStatic(ctx)
		r.changeStatic(ctx)
	} else {
		r.dynamic(ctx)
	}
	r.snapshots(ctx)
	r.stage(ctx)
}

// wanted reports whether a phase is shown.
func (r *rendering) wanted(phase string, has bool) bool {
	if len(r.options.phases) == 0 {
		return has
	}
	return slices.Contains(r.options.phases, phase)
}

func (r *rendering) fail(phase string, err error) {
	r.failures = append(r.failures, failure{phase, err})
}

// show adds a phase, with or without a pod.
func (r *rendering) show(phase Phase, pod *corev1.Pod) {
	if pod != nil {
		plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
		if err != nil {
			r.fail(phase.Phase, err)
			return
		}
		prune(plain)
		phase.Pod = plain
	}
	r.result.Phases = append(r.result.Phases, phase)
}

// dynamic renders what the controller agent does for a claim.
func (r *rendering) dynamic(ctx context.Context) {
	spec := &r.provisioner.Spec
	if err := r.begin(); err != nil {
		r.fail(creation, err)
		return
	}
	request := podplan.VolumeRequest{
		Provisioner: r.provisioner.UID, Generation: r.provisioner.Generation,
		Claim: r.claim, Class: r.class, Attributes: parameters(r.attributesClass), Source: r.ledger.Spec.Source,
		Templates: r.templates, GetPVC: r.getPVC, Allowed: spec.AllowedClaimNamespaces,
	}
	r.provisioned = runtime.DeepCopyJSON(r.claim)
	if r.selected {
		request.Node = r.node
	}
	if r.wanted(validation, true) {
		r.validate(ctx, request)
	} else if spec.VolumeValidation != nil && spec.VolumeValidation.PodTemplate != nil {
		r.pods++
	}
	r.made = r.create(ctx, request)
	if r.volume == nil {
		r.makeVolume()
	} else {
		r.bind(r.volume)
	}
	request.Volume = r.volume
	r.expand(ctx, request)
	r.modify(ctx, request)
	request.Claim, request.Provisioned = r.claim, r.provisioned // the claim when the volume is deleted, and when it was created
	r.delete(ctx, request, text(r.volume, "spec", "csi", "volumeHandle"))
}

// begin fills in the ledger as the controller agent does for the claim.
func (r *rendering) begin() error {
	claim := &corev1.PersistentVolumeClaim{}
	class := &storagev1.StorageClass{}
	rawClaim, err := convert(r.claim, claim)
	if err != nil {
		return err
	}
	rawClass, err := convert(r.class, class)
	if err != nil {
		return err
	}
	if _, _, err := podplan.Parameters(class); err != nil {
		return err
	}
	if r.attributesClass != nil {
		attributes := &storagev1.VolumeAttributesClass{}
		if _, err := convert(r.attributesClass, attributes); err != nil {
			return err
		}
		if err := podplan.CheckAttributes(r.provisioner, attributes); err != nil {
			return err
		}
	}
	name := protocol.VolumeName(claim.UID)
	r.ledger = &pavv1.PavVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid("PavVolume", "", name)},
		Spec: pavv1.PavVolumeSpec{
			Provisioner:  r.provisioner.Name,
			ClaimRef:     pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			StorageClass: rawClass, Claim: rawClaim,
			ReclaimPolicy: *class.ReclaimPolicy,
		},
	}
	return r.recordSource(claim)
}

// convert fills in a typed object, and returns it as JSON.
func convert(plain map[string]any, typed any) (apiextensionsv1.JSON, error) {
	raw, err := json.Marshal(plain)
	if err == nil {
		err = json.Unmarshal(raw, typed)
	}
	if err != nil {
		return apiextensionsv1.JSON{}, fmt.Errorf("reading %s %q: %w", text(plain, "kind"), text(plain, "metadata", "name"), err)
	}
	return apiextensionsv1.JSON{Raw: raw}, nil
}

func (r *rendering) validate(ctx context.Context, request podplan.VolumeRequest) {
	rendered, err := request.Validate(ctx, r.provisioner.Spec.VolumeValidation)
	if err != nil {
		r.fail(validation, err)
		return
	}
	phase := Phase{Phase: validation, Notes: []string{"the claim is one that the definition supports"}}
	if rendered == nil {
		if r.wanted(validation, r.provisioner.Spec.VolumeValidation != nil) {
			r.show(phase, nil)
		}
		return
	}
	phase.Notes = []string{phase.Notes[0] + ", if the pod succeeds"}
	r.build(phase, pavv1.WorkflowValidation, rendered, nil)
}

// build shows the next pod of the ledger.
func (r *rendering) build(phase Phase, kind string, rendered map[string]any, within *corev1.NodeSelector) {
	r.pods++
	pod, err := podplan.VolumePod(r.ledger, kind, rendered, podplan.Placement{Within: within}, workflow.Defaults{}, r.pods)
	if err != nil {
		r.fail(phase.Phase, err)
		return
	}
	r.show(phase, pod)
}

// create renders creation, and returns the resulting volume, which is made up if creation fails.
func (r *rendering) create(ctx context.Context, request podplan.VolumeRequest) podplan.VolumeOutcome {
	plan := request.Create
	if r.provisioner.Spec.MakesBucketVolumes() {
		plan = func(ctx context.Context, c *pavv1.VolumeCreation) (*podplan.Creation, error) {
			return request.CreateBucketVolume(ctx, c, "")
		}
	}
	c, err := plan(ctx, r.provisioner.Spec.VolumeCreation)
	if err == nil && c.Pod == nil {
		_, err = c.Outcome(nil)
	}
	wanted := r.wanted(creation, true)
	switch {
	case err != nil && wanted:
		r.fail(creation, err)
	case err != nil:
		r.unshown = []failure{{creation, err}}
	}
	if c == nil {
		c = &podplan.Creation{}
	}
	if c.DefaultHandle == "" {
		c.DefaultHandle = protocol.VolumeName(r.ledger.Spec.ClaimRef.UID)
	}
	made := r.standIn(c)
	r.ledger.Status.AccessibleTopology = c.Topology
	switch {
	case err != nil:
	case wanted:
		r.showCreation(c, made)
	case c.Pod != nil:
		r.pods++
	}
	return made
}

func (r *rendering) showCreation(c *podplan.Creation, made podplan.VolumeOutcome) {
	phase := Phase{Phase: creation, Handle: made.Handle, Capacity: quantityText(made.Capacity), AccessibleTopology: c.Topology}
	if c.Pod == nil {
		r.show(phase, nil)
		return
	}
	if c.Handle == "" {
		phase.Notes = append(phase.Notes, "if the pod writes /pav/handle, that is the handle")
	}
	if c.Capacity == 0 {
		phase.Notes = append(phase.Notes, "the pod writes the capacity to /pav/capacity; the capacity shown is the claim's request")
	}
	r.build(phase, pavv1.WorkflowCreation, c.Pod, c.Within)
}

// standIn returns a made-up volume for the case that creation fails.
func (r *rendering) standIn(c *podplan.Creation) podplan.VolumeOutcome {
	made := podplan.VolumeOutcome{Handle: c.Handle, Capacity: c.Capacity}
	if made.Handle == "" {
		made.Handle = c.DefaultHandle
	}
	if r.options.handle != "" {
		made.Handle = r.options.handle
	}
	if made.Capacity == 0 {
		made.Capacity = storageOf(r.claim, "spec", "resources", "requests")
	}
	return made
}

// storageOf returns the quantity of storage at a path, in bytes; 0 if there is none.
func storageOf(object map[string]any, path ...string) int64 {
	q, err := resource.ParseQuantity(text(object, append(path, "storage")...))
	if err != nil {
		return 0
	}
	return q.Value()
}

func quantityText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// delete renders the deletion of the volume with the handle.
func (r *rendering) delete(ctx context.Context, request podplan.VolumeRequest, handle string) {
	d := r.provisioner.Spec.VolumeDeletion
	if !r.wanted(deletion, d != nil && d.PodTemplate != nil) {
		return
	}
	r.ledger.Status.Handle = handle
	rendered, err := request.Deletion(ctx, d, handle)
	if err != nil {
		r.fail(deletion, err)
		return
	}
	if rendered == nil {
		r.show(Phase{Phase: deletion}, nil)
		return
	}
	r.build(Phase{Phase: deletion}, pavv1.WorkflowDeletion, rendered, nil)
}
