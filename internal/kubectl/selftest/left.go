package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// leftVolumes reports the stages and volumes that could not be removed, and the objects that are kept because their
// removal may need them.
func (r *run) leftVolumes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*askTimeout)
	defer cancel()
	selected := client.MatchingLabels{pavv1.ProvisionerLabel: r.name}
	words := r.podErrorMessages(ctx, selected)
	stages, volumes, pvs := &pavv1.PavStageList{}, &pavv1.PavVolumeList{}, &corev1.PersistentVolumeList{}
	errs := errors.Join(r.client.List(ctx, stages, selected), r.client.List(ctx, volumes, selected), r.client.List(ctx, pvs))
	if errs != nil {
		r.report.Left = append(r.report.Left, Left{Kind: "Perhaps volumes of", Name: r.name, Why: "they cannot be listed: " + errs.Error(), Commands: []string{"kubectl pav get " + r.name}})
	}
	for i := range stages.Items {
		r.leftStage(&stages.Items[i], words)
	}
	written := map[string]bool{}
	for i := range pvs.Items {
		written[pvs.Items[i].Name] = true
	}
	for i := range volumes.Items {
		r.leftVolume(&volumes.Items[i], written[volumes.Items[i].Name], words)
	}
	kinds := make([]string, len(r.created))
	for i, object := range r.created {
		kinds[i] = kindOf(object)
	}
	if r.buckets {
		r.leftBuckets(ctx, words)
	}
	r.report.Left = append(r.report.Left, Left{
		Kind: strings.Join(kinds, ", ") + " of", Name: r.name,
		Why:      "they are kept, as the objects above may need them; remove them when those are gone",
		Commands: []string{r.removal()},
	})
}

// podMessages maps namespace and name of failed pods to what they wrote to /pav/error.
type podMessages map[client.ObjectKey]string

// podErrorMessages waits for some time until nodes have reported the messages of all failed pods: a slow node reports them
// after the failure.
func (r *run) podErrorMessages(ctx context.Context, selected client.MatchingLabels) podMessages {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	words := podMessages{}
	// An error only means that messages are missing, so the rest is reported.
	_ = await(ctx, r.client, &corev1.PodList{}, func(seen objects) (bool, error) {
		complete := true
		for key, object := range seen {
			pod, ok := object.(*corev1.Pod)
			if !ok || pod.Status.Phase != corev1.PodFailed {
				continue
			}
			switch result, err := workflow.ResultOf(pod); {
			case err != nil:
			case result == nil:
				complete = false
			default:
				words[key] = strings.TrimSpace(result.Error)
			}
		}
		return complete, nil
	}, selected)
	return words
}

// with returns the message of a failure, including the pod's message.
func (w podMessages) with(f *pavv1.WorkflowFailure) string {
	words := w[client.ObjectKey{Namespace: f.PodNamespace, Name: f.PodName}]
	if words == "" || strings.Contains(f.Message, words) {
		return f.Message
	}
	return f.Message + "; it wrote to /pav/error: " + words
}

// edit is the command to fix a definition.
func (r *run) edit(field string) string {
	return fmt.Sprintf("kubectl edit pavprovisioner %s   # fix its spec.%s; PaV then retries, or retry now:", r.name, field)
}

func (r *run) leftStage(s *pavv1.PavStage, words podMessages) {
	why := "the volume is still on node " + s.Spec.NodeName
	var commands []string
	if s.Status.UnstagingFailure != nil {
		why = "unstaging fails on node " + s.Spec.NodeName + ": " + words.with(s.Status.UnstagingFailure)
		commands = []string{r.edit("volumeUnstaging"), "kubectl pav retry pavstage/" + s.Name}
	}
	r.left(s, why, commands...)
}

func (r *run) leftVolume(v *pavv1.PavVolume, hasPV bool, words podMessages) {
	if v.Status.DeletionFailure == nil {
		why := "its phase is " + string(v.Status.Phase)
		if condition := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeDeleted); condition != nil && condition.Status == metav1.ConditionFalse {
			why = condition.Message
		}
		r.left(v, why, "kubectl pav describe pv "+v.Name)
		return
	}
	commands := []string{r.edit("volumeDeletion"), "kubectl pav retry pavvolume/" + v.Name}
	if hasPV {
		commands = append(commands, fmt.Sprintf(`kubectl patch pv %[1]s -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}' && kubectl delete pv/%[1]s pavvolume/%[1]s   # or abandon its storage`, v.Name))
	} else {
		commands = append(commands, fmt.Sprintf(`kubectl patch pavvolume %[1]s --type=merge -p '{"spec":{"reclaimPolicy":"Retain"}}' && kubectl delete pavvolume/%[1]s   # or abandon its storage`, v.Name))
	}
	r.left(v, "its deletion fails: "+words.with(v.Status.DeletionFailure), commands...)
}
