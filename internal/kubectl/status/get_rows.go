package status

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// VolumeRow is a volume and the nodes on which it is available. Its JSON is the output of -o json.
type VolumeRow struct {
	// Namespace and Claim are those of the claim that the PersistentVolume is bound to, or else of the claim for
	// which the volume was created or staged.
	Namespace   string `json:"namespace"`
	Claim       string `json:"claim"`
	PV          string `json:"pv"`
	Provisioner string `json:"provisioner"`

	// Dynamic means that PaV created the volume; an administrator wrote the others.
	Dynamic bool `json:"dynamic"`

	// Phase and Step are those of the PavVolume; a volume that an administrator wrote has no phase.
	Phase pavv1.VolumePhase `json:"phase,omitempty"`
	Step  pavv1.VolumeStep  `json:"step,omitempty"`

	Capacity string `json:"capacity,omitempty"`

	// Failures is the number of failed attempts to create or delete the volume, whichever is in progress.
	Failures int32 `json:"failures,omitempty"`

	// Failure is the reason for which the last attempt failed, until one succeeds.
	Failure string `json:"failure,omitempty"`

	Nodes   []VolumeNode `json:"nodes,omitempty"`
	Created metav1.Time  `json:"created"`
}

// VolumeNode is a volume on a node.
type VolumeNode struct {
	Name     string           `json:"name"`
	Stage    string           `json:"stage"`
	Client   string           `json:"client,omitempty"`
	Phase    pavv1.StagePhase `json:"phase,omitempty"`
	Degraded string           `json:"degraded,omitempty"`
	Failures int32            `json:"failures,omitempty"`
}

// Failing reports whether the volume has a problem on the node.
func (n *VolumeNode) Failing() bool {
	return n.Degraded != "" || n.Failures > 0 || n.Phase == pavv1.StageFailed
}

// JoinVolumes joins PavVolumes, PavStages and PersistentVolumes of any driver into rows, sorted by namespace and claim.
func JoinVolumes(volumes []pavv1.PavVolume, stages []pavv1.PavStage, pvs []corev1.PersistentVolume) []VolumeRow {
	all := make([]VolumeRow, 0, len(volumes))
	place := map[string]int{}
	for i := range volumes {
		place[volumes[i].Name] = len(all)
		all = append(all, rowOfVolume(&volumes[i]))
	}
	for i := range stages {
		s := &stages[i]
		at, known := place[s.Spec.VolumeName]
		if !known {
			at = len(all)
			place[s.Spec.VolumeName] = at
			all = append(all, rowOfStage(s))
		}
		all[at].Nodes = append(all[at].Nodes, nodeOf(s))
		if failure := stageFailure(s); failure != nil && all[at].Failure == "" {
			all[at].Failure = failure.Message
		}
	}
	for i := range pvs {
		if at, known := place[pvs[i].Name]; known {
			all[at].bind(&pvs[i])
		}
	}
	for i := range all {
		slices.SortFunc(all[i].Nodes, func(a, b VolumeNode) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Client, b.Client)) })
	}
	slices.SortFunc(all, func(a, b VolumeRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim), a.Created.Compare(b.Created.Time), cmp.Compare(a.PV, b.PV))
	})
	return all
}

// bind sets the claim to the one that is bound to the volume. It may differ from the claim for which the volume was
// created: volume populators and administrators bind volumes to other claims.
func (v *VolumeRow) bind(pv *corev1.PersistentVolume) {
	ref := pv.Spec.ClaimRef
	if ref == nil || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != v.Provisioner {
		return
	}
	v.Namespace, v.Claim = ref.Namespace, ref.Name
}

func rowOfVolume(v *pavv1.PavVolume) VolumeRow {
	ref, status := &v.Spec.ClaimRef, &v.Status
	row := VolumeRow{Namespace: ref.Namespace, Claim: ref.Name, PV: v.Name, Provisioner: v.Spec.Provisioner, Dynamic: !v.Spec.Static,
		Phase: status.Phase, Step: status.Step, Created: v.CreationTimestamp}
	if status.Capacity != nil {
		row.Capacity = status.Capacity.String()
	}
	switch {
	case v.Spec.Static:
		row.Phase = ""
	case row.Phase == "":
		row.Phase = pavv1.VolumePending
	}
	switch {
	case status.DeletionFailure != nil:
		row.Failure, row.Failures = status.DeletionFailure.Message, failureCount(status.DeletionAttempt, status.Pod)
	case status.Failure != nil:
		row.Failure, row.Failures = status.Failure.Message, failureCount(status.Attempt, status.Pod)
	case status.ChangeFailure(pavv1.WorkflowExpansion) != nil:
		row.Failure, row.Failures = status.Expansion.Failure.Message, failureCount(status.Expansion.Attempt, podIn(status, pavv1.StepExpanding))
	case status.ChangeFailure(pavv1.WorkflowModification) != nil:
		row.Failure, row.Failures = status.Modification.Failure.Message, failureCount(status.Modification.Attempt, podIn(status, pavv1.StepModifying))
	}
	return row
}

// podIn returns the pod of a volume if it is that of a step, or nil.
func podIn(status *pavv1.PavVolumeStatus, step pavv1.VolumeStep) *pavv1.PodReference {
	if status.Step != step {
		return nil
	}
	return status.Pod
}

// failureCount returns the number of failed attempts; the current attempt is not counted.
func failureCount(attempt int32, pod *pavv1.PodReference) int32 {
	if pod != nil {
		attempt--
	}
	return max(attempt, 1)
}

// rowOfStage returns the row of a static volume.
func rowOfStage(s *pavv1.PavStage) VolumeRow {
	row := VolumeRow{Namespace: s.Spec.ClaimRef.Namespace, Claim: s.Spec.ClaimRef.Name, PV: s.Spec.VolumeName,
		Provisioner: s.Spec.Provisioner, Created: s.CreationTimestamp}
	pv := &corev1.PersistentVolume{}
	if err := json.Unmarshal(s.Spec.Volume.Raw, pv); err == nil {
		capacity := pv.Spec.Capacity[corev1.ResourceStorage]
		row.Capacity = capacity.String()
		row.Created = pv.CreationTimestamp
	}
	return row
}

func nodeOf(s *pavv1.PavStage) VolumeNode {
	n := VolumeNode{Name: s.Spec.NodeName, Stage: s.Name, Phase: s.Status.Phase}
	if s.Spec.Client != nil {
		n.Client = s.Spec.Client.Namespace + "/" + s.Spec.Client.Name
	}
	for _, c := range s.Status.Conditions {
		if c.Type == pavv1.StageDegraded && c.Status == metav1.ConditionTrue {
			n.Degraded = c.Reason
		}
	}
	switch status := &s.Status; {
	case status.UnstagingFailure != nil:
		n.Failures = max(status.UnstagingAttempt-1, 1)
	case status.StagingFailure != nil:
		n.Failures = max(status.Attempt, 1)
	}
	return n
}

func stageFailure(s *pavv1.PavStage) *pavv1.WorkflowFailure {
	if s.Status.UnstagingFailure != nil {
		return s.Status.UnstagingFailure
	}
	return s.Status.StagingFailure
}

func inNamespace(volumes []VolumeRow, namespace string) []VolumeRow {
	return slices.DeleteFunc(volumes, func(v VolumeRow) bool { return v.Namespace != namespace })
}
