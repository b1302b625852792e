package render

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

var errNoStatic = &podplan.Error{Err: errors.New("spec.provisioningModes: has no Static, but PaV did not create the PersistentVolume")}

// validateStatic renders the validation with which the node agent begins the staging of a static volume.
func (r *rendering) validateStatic(ctx context.Context) {
	if !r.provisioner.Supports(pavv1.ProvisioningModeStatic) {
		r.fail(validation, errNoStatic)
		return
	}
	for _, phase := range []string{creation, deletion} {
		if slices.Contains(r.options.phases, phase) {
			r.show(Phase{Phase: phase, Notes: []string{"the PersistentVolume is static: PaV neither creates nor deletes its storage"}}, nil)
		}
	}
	if !r.wanted(validation, true) {
		return
	}
	if err := r.definition().Validate(ctx, r.volume); err != nil {
		r.fail(validation, err)
		return
	}
	stage, err := r.record()
	if err != nil {
		r.fail(validation, err)
		return
	}
	pod, err := r.definition().Validation(ctx, stage, r.volume)
	if err != nil {
		r.fail(validation, err)
		return
	}
	phase := Phase{Phase: validation, Notes: []string{"the PersistentVolume is one that the definition supports"}}
	if pod != nil {
		phase.Notes[0] += ", if the pod succeeds"
	}
	if r.wanted(validation, r.provisioner.Spec.VolumeValidation != nil) {
		r.show(phase, pod)
	}
}

func (r *rendering) definition() podplan.StageRequest {
	return podplan.StageRequest{Provisioner: r.provisioner, Templates: r.templates, GetPVC: r.getPVC}
}

// target is the path at which a volume is published to a client pod, in scope Pod.
const target = "/var/lib/kubelet/pods/" + created + "/volume"

// record returns the PavStage of the volume, or the one that the node agent creates.
func (r *rendering) record() (*pavv1.PavStage, error) {
	if r.staged != nil {
		return r.staged, nil
	}
	volume := &corev1.PersistentVolume{}
	claim := &corev1.PersistentVolumeClaim{}
	rawVolume, err := convert(r.volume, volume)
	if err != nil {
		return nil, err
	}
	rawClaim, err := convert(r.claim, claim)
	if err != nil {
		return nil, err
	}
	node := text(r.node, "metadata", "name")
	stage := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: podplan.StageName(volume, node)}, Spec: podplan.StageSpec(volume, claim, node)}
	if r.provisioner.Scope() == pavv1.StagingScopePod {
		stage.Name = podplan.ClientStageName(volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle, node, target)
	}
	stage.UID = uid("PavStage", "", stage.Name)
	stage.Spec.Scope, stage.Spec.Volume, stage.Spec.Claim = r.provisioner.Scope(), rawVolume, rawClaim
	stage.Spec.ReadOnly = stage.Spec.ReadOnly || r.options.readOnly
	stage.Status.Attempt = 1
	return stage, nil
}

// stage renders staging, the expansion on the node, and unstaging.
func (r *rendering) stage(ctx context.Context) {
	u, e := r.provisioner.Spec.VolumeUnstaging, r.provisioner.Spec.VolumeExpansion
	wanted := map[string]bool{
		staging:   r.wanted(staging, true),
		unstaging: r.wanted(unstaging, u != nil && u.PodTemplate != nil),

		nodeExpansion: r.wanted(nodeExpansion, !r.static && e != nil && e.NodePodTemplate != nil),
	}
	if r.volume == nil || !wanted[staging] && !wanted[nodeExpansion] && !wanted[unstaging] {
		return
	}
	stage, err := r.record()
	if err != nil {
		r.fail(staging, err)
		return
	}
	bucket, guessed := r.bucketVolume(ctx, stage)
	see := podplan.StageObjects{Volume: r.volume, Claim: r.claim, Node: r.node, Provisioned: r.provisioned, Bucket: bucket}
	makers := map[string]func() (*corev1.Pod, error){
		staging:   func() (*corev1.Pod, error) { return r.definition().Staging(ctx, stage, see) },
		unstaging: func() (*corev1.Pod, error) { return r.definition().Unstaging(ctx, stage, see, 1) },

		nodeExpansion: func() (*corev1.Pod, error) {
			capacity, _ := r.target()
			return r.definition().NodeExpansion(ctx, stage, see, 1, capacity)
		},
	}
	for _, phase := range []string{staging, nodeExpansion, unstaging} {
		if !wanted[phase] {
			continue
		}
		pod, err := makers[phase]()
		if err != nil {
			r.fail(phase, err)
			continue
		}
		shown := Phase{Phase: phase}
		if pod != nil {
			shown.Notes = []string{"on node " + stage.Spec.NodeName}
			if guessed {
				shown.Notes = append(shown.Notes, "what the creation pod may write below /pav/info is made up")
			}
		}
		r.show(shown, pod)
	}
}

// makeVolume binds the claim to the PersistentVolume that the controller agent writes.
func (r *rendering) makeVolume() {
	r.ledger.Status.Handle = r.made.Handle
	r.ledger.Status.Capacity = resource.NewQuantity(r.made.Capacity, resource.BinarySI)
	pv, err := podplan.PersistentVolume(r.ledger)
	if err != nil {
		r.fail(creation, err)
		return
	}
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pv)
	if err != nil {
		r.fail(creation, err)
		return
	}
	prune(plain)
	plain["apiVersion"], plain["kind"] = "v1", "PersistentVolume"
	storedVolume(plain, r.claim)
	r.bind(plain)
}

// definitionOf returns a definition as the agents read it.
func definitionOf(plain map[string]any) (*pavv1.PavProvisioner, error) {
	p := &pavv1.PavProvisioner{}
	if _, err := convert(plain, p); err != nil {
		return nil, err
	}
	p.Generation = 1
	if p.UID == "" {
		p.UID = types.UID(p.Name)
	}
	return p, nil
}
