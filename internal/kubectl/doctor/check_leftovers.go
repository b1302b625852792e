package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// stuckTime is how long a deletion may take before it is reported.
const stuckTime = 10 * time.Minute

// checkLeftovers looks for objects that should be gone.
func checkLeftovers(f *Facts) (rows []Row, well string) {
	for _, part := range []func(*Facts) []Row{stagesOfGoneNodes, lostVolumes, stuckSnapshots, stuckBuckets, stuckAccesses, podsWithoutOwner, stuckDeletions} {
		rows = append(rows, part(f)...)
	}
	rows = append(rows, f.unknown(listProvisioner, listVolumes, listStages, listSnapshots, listBuckets, listAccesses, listPods, listNodes, listPVs, listClaims)...)
	return rows, "no object of a node, a claim or an owner that is gone; no deletion takes longer than " + cli.Duration(stuckTime)
}

// stagesOfGoneNodes returns the stages whose node is gone, which the controller agent should have released.
func stagesOfGoneNodes(f *Facts) []Row {
	if f.unknown(listStages, listNodes) != nil {
		return nil
	}
	nodes := map[string]bool{}
	for i := range f.Nodes {
		nodes[f.Nodes[i].Name] = true
	}
	var names []string
	for i := range f.Stages {
		if s := &f.Stages[i]; !nodes[s.Spec.NodeName] {
			names = append(names, fmt.Sprintf("%s (node %s)", s.Name, s.Spec.NodeName))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Row{problem(fmt.Sprintf("the node of %s gone: %s", plural(len(names), "PavStage is", "PavStages is"), listed(names)),
		status.Step{Text: "the controller agent removes them; if it does not, see its log", Command: f.controllerLogs()})}
}

// lostVolumes returns the PavVolumes that lack their PersistentVolume, and those whose claim is gone and whose deletion does
// not get ahead.
func lostVolumes(f *Facts) (rows []Row) {
	if f.unknown(listVolumes, listPVs, listClaims) != nil {
		return nil
	}
	var lost, stuck []string
	for i := range f.Volumes {
		v := &f.Volumes[i]
		switch {
		case v.Spec.Static: // its record follows the PersistentVolume
		case v.Status.Phase == pavv1.VolumeReady && f.PVs[v.Name] == nil:
			lost = append(lost, v.Name)
		case v.Status.Phase != pavv1.VolumeRetained && !f.Claims[v.Spec.ClaimRef.UID] && isStuck(f, v):
			stuck = append(stuck, v.Name)
		}
	}
	if len(lost) > 0 {
		of := plural(len(lost), "PavVolume is", "PavVolumes is")
		rows = append(rows, problem(fmt.Sprintf("the PersistentVolume of %s gone: %s", of, listed(lost)),
			status.Step{Text: "see what to do", Command: "kubectl pav describe pv/" + lost[0]}))
	}
	if len(stuck) > 0 {
		of := plural(len(stuck), "PavVolume is", "PavVolumes is")
		rows = append(rows, problem(fmt.Sprintf("the claim of %s gone, and the storage is not deleted: %s", of, listed(stuck)),
			status.Step{Text: "see why", Command: "kubectl pav describe pv/" + stuck[0]},
			status.Step{Text: "then start the next attempt now", Command: "kubectl pav retry pavvolume/" + stuck[0]}))
	}
	return rows
}

// isStuck reports whether the deletion of a volume, or the reversal of its creation, fails or has waited for long.
func isStuck(f *Facts, v *pavv1.PavVolume) bool {
	if v.Status.DeletionFailure != nil {
		return true
	}
	waiting := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeDeleted)
	return waiting != nil && waiting.Status == metav1.ConditionFalse && f.Now.Sub(waiting.LastTransitionTime.Time) > stuckTime
}

// stuckSnapshots returns the PavSnapshots that cannot be deleted.
func stuckSnapshots(f *Facts) []Row {
	var stuck []string
	for i := range f.Snapshots {
		s := &f.Snapshots[i]
		waiting := meta.FindStatusCondition(s.Status.Conditions, pavv1.SnapshotDeleted)
		if s.Status.DeletionFailure != nil || waiting != nil && waiting.Status == metav1.ConditionFalse && f.Now.Sub(waiting.LastTransitionTime.Time) > stuckTime {
			stuck = append(stuck, s.Name)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	return []Row{problem(fmt.Sprintf("the storage of %s not deleted: %s", plural(len(stuck), "PavSnapshot is", "PavSnapshots is"), listed(stuck)),
		status.Step{Text: "see why", Command: "kubectl pav describe pavsnapshot/" + stuck[0]},
		status.Step{Text: "then start the next attempt now", Command: "kubectl pav retry pavsnapshot/" + stuck[0]})}
}

// podsWithoutOwner returns the workflow pods whose record is gone.
func podsWithoutOwner(f *Facts) []Row {
	if f.unknown(listPods, listVolumes, listStages, listSnapshots, listBuckets, listAccesses) != nil {
		return nil
	}
	owners := map[types.UID]bool{}
	for i := range f.Volumes {
		owners[f.Volumes[i].UID] = true
	}
	for i := range f.Stages {
		owners[f.Stages[i].UID] = true
	}
	for i := range f.Snapshots {
		owners[f.Snapshots[i].UID] = true
	}
	for i := range f.Buckets {
		owners[f.Buckets[i].UID] = true
	}
	for i := range f.Accesses {
		owners[f.Accesses[i].UID] = true
	}
	var left []client.ObjectKey
	for i := range f.Pods {
		if pod := &f.Pods[i]; !isOwned(pod, owners) && pod.DeletionTimestamp == nil && f.settled(pod.CreationTimestamp) {
			left = append(left, client.ObjectKeyFromObject(pod))
		}
	}
	if len(left) == 0 {
		return nil
	}
	names := make([]string, len(left))
	for i := range left {
		names[i] = left[i].String()
	}
	of := plural(len(left), "workflow pod is", "workflow pods is")
	return []Row{problem(fmt.Sprintf("PaV's record of %s gone: %s", of, listed(names)),
		step("check what it does", "kubectl -n %s describe pod %s", left[0].Namespace, left[0].Name),
		step("then remove it", "kubectl -n %s delete pod %s", left[0].Namespace, left[0].Name))}
}

// isOwned reports whether a workflow pod belongs to one of the owners.
func isOwned(pod *corev1.Pod, owners map[types.UID]bool) bool {
	if controller := metav1.GetControllerOf(pod); controller != nil {
		return owners[controller.UID]
	}
	for owner := range owners {
		if workflow.Belongs(pod, owner) {
			return true
		}
	}
	return false
}

// deletion is the deletion of an object, and the command that says more about it.
type deletion struct {
	kind, name, see string
	since           time.Time
}

// stuckDeletions returns a row for each kind of object whose deletion waits for PaV for too long.
func stuckDeletions(f *Facts) (rows []Row) {
	found := map[string][]deletion{}
	add := func(kind string, object client.Object, finalizer, see string) {
		since := object.GetDeletionTimestamp()
		if since == nil || f.Now.Sub(since.Time) <= stuckTime || !slices.Contains(object.GetFinalizers(), finalizer) {
			return
		}
		name := strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
		found[kind] = append(found[kind], deletion{kind, name, see, since.Time})
	}
	for i := range f.Provisioners {
		add("PavProvisioner", &f.Provisioners[i], pavv1.ProvisionerFinalizer, "kubectl pav describe pav/"+f.Provisioners[i].Name)
	}
	for i := range f.Volumes {
		add("PavVolume", &f.Volumes[i], pavv1.VolumeFinalizer, "kubectl pav describe pv/"+f.Volumes[i].Name)
	}
	for i := range f.Stages {
		add("PavStage", &f.Stages[i], pavv1.StageFinalizer, "kubectl pav describe pv/"+f.Stages[i].Spec.VolumeName)
	}
	for i := range f.Snapshots {
		add("PavSnapshot", &f.Snapshots[i], pavv1.SnapshotFinalizer, "kubectl pav describe pavsnapshot/"+f.Snapshots[i].Name)
	}
	for i := range f.Buckets {
		add("PavBucket", &f.Buckets[i], pavv1.BucketFinalizer, "kubectl pav describe pavbucket/"+f.Buckets[i].Name)
	}
	for i := range f.Accesses {
		add("PavBucketAccess", &f.Accesses[i], pavv1.BucketFinalizer, "kubectl pav describe pavbucketaccess/"+f.Accesses[i].Name)
	}
	for i := range f.Pods {
		add("workflow pod", &f.Pods[i], pavv1.PodFinalizer, fmt.Sprintf("kubectl -n %s describe pod %s", f.Pods[i].Namespace, f.Pods[i].Name))
	}
	for name, pv := range f.PVs {
		if f.isPaVs(pv) {
			add("PersistentVolume", pv, pavv1.PVFinalizer, "kubectl pav describe pv/"+name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		rows = append(rows, stuckKind(f, kind, found[kind]))
	}
	return rows
}

// stuckKind returns the row about deletions of one kind.
func stuckKind(f *Facts, kind string, all []deletion) Row {
	oldest := slices.MinFunc(all, func(a, b deletion) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name)) })
	age, see := cli.Duration(f.Now.Sub(oldest.since)), status.Step{Text: "see what it waits for", Command: oldest.see}
	if len(all) == 1 {
		return problem(fmt.Sprintf("%s %s has been under deletion for %s", kind, oldest.name, age), see)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return problem(fmt.Sprintf("%d %s have been under deletion for up to %s: %s", len(all), pluralOf(kind), age, listed(names)), see)
}

func pluralOf(kind string) string {
	if strings.HasSuffix(kind, "s") {
		return kind + "es"
	}
	return kind + "s"
}

// isPaVs reports whether PaV created a PersistentVolume. Other provisioners have the same finalizer.
func (f *Facts) isPaVs(pv *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(f.Provisioners, func(p pavv1.PavProvisioner) bool { return p.Name == pv.Annotations[protocol.ProvisionedBy] }) ||
		slices.ContainsFunc(f.Volumes, func(v pavv1.PavVolume) bool { return v.Name == pv.Name && !v.Spec.Static })
}
