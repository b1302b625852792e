package status

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// details returns the details of the objects, in the order in which the objects are created.
func details(f *Facts) []Detail {
	var all []Detail
	add := func(name, value string, state State) {
		if value != "" {
			all = append(all, Detail{name, value, state})
		}
	}
	if f.Snapshot != nil {
		all = snapshotDetails(f)
	}
	if f.Bucket != nil {
		return bucketDetails(f)
	}
	add(claimDetail(f))
	if f.Claim != nil && f.Snapshot == nil {
		add("StorageClass", protocol.ClassName(f.Claim), "")
	}
	add("Source", sourceDetail(f), "")
	value, state := provisionerDetail(f)
	add("Provisioner", value, state)
	add(volumeDetail(f))
	add(pvDetail(f))
	if f.Snapshot == nil {
		for _, record := range f.recordsInTheMaking() {
			all = append(all, recordDetail("Snapshot", nameOfRecord(record), record))
		}
	}
	for i := range f.Copies {
		add(copyDetail(&f.Copies[i]))
	}
	for i := range f.Stages {
		add(stageDetail(&f.Stages[i]))
	}
	for i := range f.Clients {
		add(clientDetail(&f.Clients[i]))
	}
	return all
}

func claimDetail(f *Facts) (name, value string, state State) {
	claim := f.Claim
	if claim == nil {
		if namespace, name := f.claimRef(); name != "" {
			return "Claim", fmt.Sprintf("%s/%s, deleted", namespace, name), ""
		}
		return "", "", ""
	}
	value = fmt.Sprintf("%s/%s, %s", claim.Namespace, claim.Name, claim.Status.Phase)
	if claim.DeletionTimestamp != nil {
		value += ", being deleted"
	}
	if claim.Status.Phase == corev1.ClaimBound {
		state = Healthy
	}
	return "Claim", value, state
}

// sourceDetail is what the volume is created from, which may be gone.
func sourceDetail(f *Facts) string {
	if f.Snapshot != nil {
		return ""
	}
	if f.Volume != nil && f.Volume.Spec.Source != nil {
		source := f.Volume.Spec.Source
		return fmt.Sprintf("%s %s/%s", source.Kind, source.Namespace, source.Name)
	}
	if f.Claim == nil {
		return ""
	}
	source := protocol.Source(f.Claim)
	if source == nil {
		return ""
	}
	return fmt.Sprintf("%s %s/%s", source.Kind, protocol.SourceNamespace(f.Claim, source), source.Name)
}

func copyDetail(volume *pavv1.PavVolume) (name, value string, state State) {
	ref := volume.Spec.ClaimRef
	return "Source of", fmt.Sprintf("claim %s/%s, %s", ref.Namespace, ref.Name, cmp.Or(volume.Status.Phase, pavv1.VolumePending)), ""
}

func provisionerDetail(f *Facts) (value string, state State) {
	value = f.provisionerName()
	p := f.Provisioner
	if value == "" || p == nil {
		return value, ""
	}
	for _, kind := range []string{pavv1.ProvisionerAccepted, pavv1.ProvisionerReady} {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("%s, not %s", value, kind), Failing
		}
	}
	return value, ""
}

func volumeDetail(f *Facts) (name, value string, state State) {
	v := f.Volume
	if v == nil {
		return "", "", ""
	}
	parts := []string{v.Name, string(v.Status.Phase)}
	if v.Status.Step != "" {
		parts = append(parts, strings.ToLower(string(v.Status.Step)))
	}
	if v.Status.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", v.Status.Attempt))
	}
	if v.Status.DeletionAttempt > 1 {
		parts = append(parts, fmt.Sprintf("deletion attempt %d", v.Status.DeletionAttempt))
	}
	if v.Status.Phase == pavv1.VolumeReady {
		state = Healthy
	}
	if len(v.Status.Failures()) > 0 {
		state = Failing
	}
	return "Volume", strings.Join(parts, ", "), state
}

func pvDetail(f *Facts) (name, value string, state State) {
	pv := f.PV
	if pv == nil {
		return "", "", ""
	}
	capacity := pv.Spec.Capacity[corev1.ResourceStorage]
	value = fmt.Sprintf("%s, %s, reclaim policy %s", pv.Status.Phase, capacity.String(), pv.Spec.PersistentVolumeReclaimPolicy)
	if f.Volume == nil {
		value = pv.Name + ", " + value
	}
	if pv.Status.Phase == corev1.VolumeBound {
		state = Healthy
	}
	return "PV", value, state
}

func stageDetail(s *pavv1.PavStage) (name, value string, state State) {
	value = string(s.Status.Phase)
	if value == "" {
		value = "about to be staged"
	}
	if s.Status.Phase == pavv1.StageStaged {
		state = Healthy
	}
	if c := s.Spec.Client; c != nil {
		value += " for pod " + c.Name
	}
	if s.Status.Restaging {
		value += ", being staged again"
	}
	if c := degraded(s); c != nil {
		value, state = value+", degraded", Failing
	}
	if s.Status.StagingFailure != nil || s.Status.UnstagingFailure != nil {
		state = Failing
	}
	return "On " + s.Spec.NodeName, value, state
}

func clientDetail(pod *corev1.Pod) (name, value string, state State) {
	value = fmt.Sprintf("pod %s, %s", pod.Name, pod.Status.Phase)
	if pod.Spec.NodeName != "" {
		value += ", on node " + pod.Spec.NodeName
	}
	if pod.DeletionTimestamp != nil {
		value += ", being deleted"
	}
	if pod.Status.Phase == corev1.PodRunning {
		state = Healthy
	}
	return "Used by", value, state
}
