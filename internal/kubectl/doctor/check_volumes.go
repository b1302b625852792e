package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

// checkProvisioners checks whether each PavProvisioner can be used.
func checkProvisioners(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(listProvisioner); rows != nil {
		return rows, ""
	}
	for i := range f.Provisioners {
		p := &f.Provisioners[i]
		if why := notUsable(f, p); why != "" {
			rows = append(rows, problem(fmt.Sprintf("PavProvisioner %s %s", p.Name, why),
				status.Step{Text: "see what to do", Command: "kubectl pav describe pav/" + p.Name}))
		}
	}
	return rows, fmt.Sprintf("%s ready", plural(len(f.Provisioners), "PavProvisioner is", "PavProvisioners are"))
}

// notUsable returns why a PavProvisioner cannot be used, or "". One that is being deleted is not meant to be used.
func notUsable(f *Facts, p *pavv1.PavProvisioner) string {
	if p.DeletionTimestamp != nil {
		return ""
	}
	accepted := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted)
	ready := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerReady)
	switch {
	case accepted != nil && accepted.Status != metav1.ConditionTrue:
		return "is not accepted: " + cmp.Or(accepted.Message, accepted.Reason)
	case ready != nil && ready.Status != metav1.ConditionTrue:
		return "is not ready: " + cmp.Or(ready.Message, ready.Reason)
	case (accepted == nil || ready == nil) && f.settled(p.CreationTimestamp):
		return "has not been checked by the controller agent"
	}
	return ""
}

// checkVolumes counts the volumes that fail.
func checkVolumes(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(listVolumes, listStages, listSnapshots); rows != nil {
		return rows, ""
	}
	all := status.JoinVolumes(f.Volumes, f.Stages, nil)
	var names, onNodes []string
	stages := 0
	for i := range all {
		here := 0
		for j := range all[i].Nodes {
			if all[i].Nodes[j].Failing() {
				here++
			}
		}
		stages += here
		switch {
		case all[i].Failures > 0:
			names = append(names, all[i].PV)
		case here > 0:
			onNodes = append(onNodes, all[i].PV)
		}
	}
	if len(names) > 0 {
		what := plural(len(names), "volume cannot be", "volumes cannot be")
		rows = append(rows, problem(fmt.Sprintf("%s created or deleted: %s", what, listed(names)), describeFirst(names)))
	}
	if len(onNodes) > 0 {
		what := plural(len(onNodes), "volume fails", "volumes fail")
		rows = append(rows, problem(fmt.Sprintf("%s on a node, in %s: %s", what, counted(stages, "PavStage"), listed(onNodes)), describeFirst(onNodes)))
	}
	var snapshots []string
	for i := range f.Snapshots {
		if s := &f.Snapshots[i]; s.Status.Failure != nil && s.Status.Phase != pavv1.SnapshotReady {
			snapshots = append(snapshots, s.Name)
		}
	}
	if len(snapshots) > 0 {
		rows = append(rows, problem(fmt.Sprintf("%s created: %s", plural(len(snapshots), "snapshot cannot be", "snapshots cannot be"), listed(snapshots)),
			status.Step{Text: "see what to do", Command: "kubectl pav describe pavsnapshot/" + slices.Min(snapshots)}))
	}
	return rows, fmt.Sprintf("none of %s and %s fails", counted(len(all), "volume"), counted(len(f.Stages), "stage"))
}

// describeFirst is the step that explains what is wrong with the first of some volumes.
func describeFirst(names []string) status.Step {
	first := status.Step{Text: "see what to do", Command: "kubectl pav describe pv/" + slices.Min(names)}
	if len(names) > 1 {
		first.Text += " about the first; to list all, run: kubectl pav get --wide"
	}
	return first
}
