package admission

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// podsPath is the path of the webhook for pods of node agents; deployment.yaml has it as well.
	podsPath = "/validate-pod"

	// nodeOfToken is the key of the user's extra fields with the node to which a service account's token is bound.
	nodeOfToken = "authentication.kubernetes.io/node-name"

	// recordPolicy is the policy that prevents node agents from writing records. Stages that are older have no record.
	recordPolicy = "pav-admitted-stages"
)

// PodHandler answers requests of node agents to create pods with references (podplan.References).
type PodHandler struct {
	// Client reads the API server, not a cache, and writes the records of stages.
	Client client.Client

	// Templates evaluates definitions.
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults
}

// Handle implements admission.Handler.
func (h *PodHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	return answer(ctx, request, func(ctx context.Context, pod *corev1.Pod, spec map[string]any) error {
		// The node agent may write the status of its stage meanwhile, even repeatedly.
		var err error
		for range 3 {
			if err = h.judge(ctx, request, pod, spec); !apierrors.IsConflict(err) {
				break
			}
		}
		return err
	})
}

// judge checks a pod of a node agent.
func (h *PodHandler) judge(ctx context.Context, request admission.Request, pod *corev1.Pod, spec map[string]any) error {
	stage, err := h.stageOf(ctx, request, pod)
	if err != nil {
		return err
	}
	wanted := podplan.ReferencesOf(spec)
	known, defaults := podplan.RecordOf(stage), podplan.DefaultReferences(h.PodDefaults)
	if stage.Status.Phase == pavv1.StageUnstaging && pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowStaging {
		// If none was admitted before, the node agent relies on it that none will be.
		return refusePod("PavStage %q is being unstaged", stage.Name)
	}
	if known != nil && len(wanted.Without(known.Admitted(), defaults)) == 0 {
		return nil
	}
	s, found, err := h.gather(ctx, stage)
	if err != nil {
		return err
	}
	if found.objects == nil {
		missing := wanted.Without(known.Admitted(), defaults)
		if len(missing) == 0 && pod.Annotations[pavv1.AdmitAnnotation] == "" {
			return nil // The volume was staged before the defaults were set.
		}
		_, why := s.basis()
		return refusePod("%s; the pod refers to %s%s", why, atMostNamed(missing), s.advice())
	}
	planned, err := h.planned(ctx, s, *found.objects)
	if err != nil {
		return err
	}
	if missing := wanted.Without(planned, known.Admitted(), defaults); len(missing) > 0 {
		return refusePod("%s", refusalOf(missing, fmt.Sprintf("PavProvisioner %q", stage.Spec.Provisioner)))
	}
	if request.DryRun != nil && *request.DryRun {
		return nil
	}
	return write(ctx, h.Client, stage, nextRecord(known, planned, found))
}

// stageOf returns the stage of a pod, from its owner.
func (h *PodHandler) stageOf(ctx context.Context, request admission.Request, pod *corev1.Pod) (*pavv1.PavStage, error) {
	owner, err := ownerOf(pod, "PavStage")
	if err != nil {
		return nil, refusePod("%w", err)
	}
	stage := &pavv1.PavStage{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: owner.Name}, stage); apierrors.IsNotFound(err) {
		return nil, refusePod("PavStage %q does not exist", owner.Name)
	} else if err != nil {
		return nil, fmt.Errorf("getting PavStage %q: %w", owner.Name, err)
	}
	node := ""
	if values := request.UserInfo.Extra[nodeOfToken]; len(values) > 0 {
		node = values[0]
	}
	if err := checkStage(stage, owner, pod, node); err != nil {
		return nil, refusePod("%w", err)
	}
	return stage, nil
}

// gather returns the state of a stage, and the objects with which its definition is evaluated.
func (h *PodHandler) gather(ctx context.Context, stage *pavv1.PavStage) (*standing, found, error) {
	s := &standing{stage: stage, record: podplan.RecordOf(stage)}
	live, err := h.read(ctx, s)
	if err != nil {
		return nil, found{}, err
	}
	if s.used, err = h.isUsed(ctx, s); err != nil {
		return nil, found{}, err
	}
	if s.record == nil && !s.used {
		if s.older, err = h.isOlder(ctx, stage); err != nil {
			return nil, found{}, err
		}
	}
	if s.kept, err = podplan.KeptObjects(stage); err != nil {
		return nil, found{}, err
	}
	spec := &stage.Spec
	switch on, _ := s.basis(); on {
	case basisLive:
		copies := isCopy(spec.Volume, live.Volume) && isCopy(spec.Claim, live.Claim) &&
			(spec.ProvisionedClaim == nil || isCopy(*spec.ProvisionedClaim, live.Provisioned)) && equality.Semantic.DeepEqual(spec.Bucket, live.Bucket)
		return s, found{objects: &live, copies: copies}, nil
	case basisCopies, basisRecorded:
		current := podplan.CurrentObjects(stage, live, s.kept)
		return s, found{objects: &current, copies: on == basisCopies}, nil
	case basisNone:
	}
	return s, found{}, nil
}

// read reads the objects of a stage.
func (h *PodHandler) read(ctx context.Context, s *standing) (live podplan.StageObjects, err error) {
	spec := &s.stage.Spec
	if s.provisioner, _, err = get[pavv1.PavProvisioner](ctx, h.Client, pavv1.GroupVersion.String(), "PavProvisioner", client.ObjectKey{Name: spec.Provisioner}); err != nil {
		return live, err
	}
	if s.volume, live.Volume, err = get[corev1.PersistentVolume](ctx, h.Client, "v1", "PersistentVolume", client.ObjectKey{Name: spec.VolumeName}); err != nil {
		return live, err
	}
	claim := client.ObjectKey{Namespace: spec.ClaimRef.Namespace, Name: spec.ClaimRef.Name}
	if s.claim, live.Claim, err = get[corev1.PersistentVolumeClaim](ctx, h.Client, "v1", "PersistentVolumeClaim", claim); err != nil {
		return live, err
	}
	if _, live.Node, err = get[corev1.Node](ctx, h.Client, "v1", "Node", client.ObjectKey{Name: spec.NodeName}); err != nil {
		return live, err
	}
	volume, _, err := get[pavv1.PavVolume](ctx, h.Client, pavv1.GroupVersion.String(), "PavVolume", client.ObjectKey{Name: spec.VolumeName})
	if err != nil {
		return live, err
	}
	live.Bucket = podplan.BucketOf(volume, spec.Provisioner, spec.VolumeHandle)
	if claim := podplan.ProvisionedClaim(volume, spec.Provisioner, spec.VolumeHandle); claim != nil {
		live.Provisioned, err = decode(claim.Raw)
	}
	return live, err
}

// isUsed reports whether a pod on the stage's node uses its claim.
func (h *PodHandler) isUsed(ctx context.Context, s *standing) (bool, error) {
	if s.claim == nil || s.claim.UID != s.stage.Spec.ClaimRef.UID {
		return false, nil
	}
	pods := &corev1.PodList{}
	if err := h.Client.List(ctx, pods, client.InNamespace(s.claim.Namespace), client.MatchingFields{"spec.nodeName": s.stage.Spec.NodeName}); err != nil {
		return false, fmt.Errorf("looking up the pods of node %q in namespace %q: %w", s.stage.Spec.NodeName, s.claim.Namespace, err)
	}
	for i := range pods.Items {
		if uses(&pods.Items[i], s.claim) {
			return true, nil
		}
	}
	return false, nil
}

// isOlder reports whether a stage is older than recordPolicy, so that it is from a version of PaV without records.
func (h *PodHandler) isOlder(ctx context.Context, stage *pavv1.PavStage) (bool, error) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: recordPolicy}, policy); err != nil {
		return false, fmt.Errorf("getting ValidatingAdmissionPolicy %q: %w", recordPolicy, err)
	}
	return stage.CreationTimestamp.Time.Before(policy.CreationTimestamp.Time), nil
}

// account looks up a service account.
func (h *PodHandler) account(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, _, err := get[corev1.ServiceAccount](ctx, h.Client, "v1", "ServiceAccount", client.ObjectKey{Namespace: namespace, Name: name})
	return account, err
}
