package status

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// diagnoseVolume returns the finding about the volume itself, independent of nodes.
func diagnoseVolume(f *Facts) []Finding {
	switch {
	case isDeleted(f):
		return diagnoseDeletion(f)
	case f.Claim != nil && protocol.Unbound(f.Claim):
		return withMistakes(f, diagnoseUnbound(f))
	case f.Claim != nil && f.Claim.Status.Phase == corev1.ClaimLost:
		return []Finding{{Code: "Lost", State: Failing, Summary: "the PersistentVolume that the claim was bound to is gone; the claim cannot be bound to another one",
			Next: []Step{{Text: "delete the claim, which deletes the storage", Command: "kubectl delete pvc -n " + f.Claim.Namespace + " " + f.Claim.Name}}}}
	case f.Claim != nil && f.Claim.DeletionTimestamp != nil:
		return []Finding{beingDeleted(f)}
	case f.Provisioner == nil && !f.hides(hiddenProvisioners) && f.provisionerName() != "":
		return []Finding{noProvisioner(f)}
	}
	return nil
}

// isDeleted reports whether the storage will be deleted, or was released.
func isDeleted(f *Facts) bool {
	if v := f.Volume; v != nil {
		return v.Status.Phase == pavv1.VolumeDeleting || v.Status.Phase == pavv1.VolumeRetained || v.DeletionTimestamp != nil ||
			v.Status.Phase == pavv1.VolumeReady && f.PV != nil && f.PV.Status.Phase == corev1.VolumeReleased ||
			v.Status.Step == pavv1.StepReverting && f.Claim == nil
	}
	return f.PV != nil && f.PV.Status.Phase == corev1.VolumeReleased
}

// beingDeleted is the finding about a claim that is being deleted while it is bound.
func beingDeleted(f *Facts) Finding {
	found := Finding{Code: "ClaimDeleting", State: Waiting, Summary: "the claim is being deleted"}
	var users []string
	for i := range f.Clients {
		if !isOver(&f.Clients[i]) {
			users = append(users, f.Clients[i].Name)
		}
	}
	if len(users) > 0 {
		found.Summary = "the claim is being deleted, and waits for " + list("pod", users)
		found.Next = []Step{{Text: "delete what uses it", Command: "kubectl delete pod -n " + f.Claim.Namespace + " " + strings.Join(users, " ")}}
		return found
	}
	var unfinished []string
	for i := range f.Unfinished {
		name := f.Unfinished[i].Name
		unfinished = append(unfinished, name)
		found.Next = append(found.Next, Step{Text: "see what the snapshot waits for; if it is not needed, delete it", Command: "kubectl pav describe " + Ref{Kind: Snapshot, Namespace: f.Claim.Namespace, Name: name}.String()})
	}
	if len(unfinished) > 0 {
		found.Summary = "the claim is being deleted, which the snapshot-controller allows once it has finished " + list("VolumeSnapshot", unfinished) + " of it"
	}
	return found
}

func noProvisioner(f *Facts) Finding {
	name := f.provisionerName()
	found := Finding{Code: "NoProvisioner", State: Failing, Summary: fmt.Sprintf("there is no PavProvisioner %q", name),
		Next: []Step{{Text: "create it, or correct the name", Command: "kubectl get pavprovisioners"}}}
	if f.Similar != "" {
		found.Summary += fmt.Sprintf("; did you mean %q?", f.Similar)
	}
	switch {
	case f.isForeign():
		found.Code, found.State = NotPaV, Waiting
		found.Summary = fmt.Sprintf("the volume is not a PaV volume: %q is another driver", name)
		found.Next = nil
	case f.Claim != nil && f.Class != nil && protocol.Unbound(f.Claim):
		found.Reason = fmt.Sprintf("StorageClass %q has that provisioner", f.Class.Name)
	}
	return found
}

// diagnoseUnbound returns what a claim without a volume waits for.
func diagnoseUnbound(f *Facts) Finding {
	for _, check := range []func(*Facts) *Finding{checkDeletion, checkClass, checkProvisioner, checkConsumer, checkDataSource} {
		if found := check(f); found != nil {
			return *found
		}
	}
	if f.Volume == nil {
		return notBegun(f)
	}
	return diagnosePending(f)
}

func checkDeletion(f *Facts) *Finding {
	if f.Claim.DeletionTimestamp == nil {
		return nil
	}
	found := beingDeleted(f)
	return &found
}

func checkClass(f *Facts) *Finding {
	name := protocol.ClassName(f.Claim)
	switch {
	case name == "" && f.Claim.Spec.StorageClassName != nil:
		return &Finding{Code: "StaticPending", State: Waiting, Summary: "the claim asks for no StorageClass, and waits for a PersistentVolume that matches it",
			Next: []Step{{Text: "create the PersistentVolume, or a claim with a StorageClass", Command: "kubectl get pv"}}}
	case name == "" && f.DefaultClass != "":
		return &Finding{Code: "NoClassYet", State: Waiting, Summary: fmt.Sprintf("the claim has no StorageClass; Kubernetes is about to set the default one, %q", f.DefaultClass)}
	case name == "" && !f.hides(hiddenClasses):
		return &Finding{Code: "NoDefaultClass", State: Failing, Summary: "the claim has no StorageClass, and there is no default StorageClass",
			Next: []Step{
				{Text: "set the claim's spec.storageClassName", Command: "kubectl get storageclasses"},
				{Text: "or make one the default", Command: "kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true"},
			}}
	case name != "" && f.Class == nil && !f.hides(hiddenClasses):
		return &Finding{Code: "NoStorageClass", State: Failing, Summary: fmt.Sprintf("there is no StorageClass %q", name),
			Next: []Step{{Text: "create it, or a claim with another one", Command: "kubectl get storageclasses"}}}
	}
	return nil
}

func checkProvisioner(f *Facts) *Finding {
	p := f.Provisioner
	name := f.provisionerName()
	see := Step{Text: "see the definition", Command: fmt.Sprintf("kubectl get pavprovisioner %s -o yaml", name)}
	switch {
	case p == nil && f.hides(hiddenProvisioners):
		return nil
	case p == nil:
		found := noProvisioner(f)
		return &found
	case p.DeletionTimestamp != nil:
		return &Finding{Code: "ProvisionerDeleting", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q is being deleted and provisions no more volumes", name), Next: []Step{see}}
	case !p.Supports(pavv1.ProvisioningModeDynamic):
		return &Finding{Code: "NotDynamic", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q provisions no volumes: its spec.provisioningModes does not contain Dynamic", name), Next: []Step{seeProvisioner(name)}}
	}
	if message := p.Refusal(); message != "" {
		return &Finding{Code: "ProvisionerNotAccepted", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q cannot be used", name), Reason: message, Next: []Step{seeProvisioner(name)}}
	}
	return nil
}

// withMistakes adds a finding that the definition has mistakes, which may be the cause of the other findings about a
// claim. The definition is used in spite of them, so the finding has the same state as the others, and follows them.
func withMistakes(f *Facts, found Finding) []Finding {
	all := []Finding{found}
	if f.Provisioner == nil {
		return all
	}
	c := meta.FindStatusCondition(f.Provisioner.Status.Conditions, pavv1.ProvisionerAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != pavv1.ProvisionerInvalid {
		return all
	}
	name := f.provisionerName()
	return append(all, Finding{Code: "ProvisionerInvalid", State: found.State, Summary: fmt.Sprintf("PavProvisioner %q has mistakes, and is used as far as possible", name),
		Reason: c.Message, Next: []Step{seeProvisioner(name)}})
}

// checkConsumer returns a finding if a claim waits for its first consumer, or for the scheduler to select a node for
// it.
func checkConsumer(f *Facts) *Finding {
	if f.Volume != nil || f.Class == nil || !protocol.BindsLate(f.Class) ||
		f.Claim.Annotations[protocol.SelectedNode] != "" {
		return nil
	}
	found := &Finding{Code: "WaitsForConsumer", State: Waiting,
		Summary: fmt.Sprintf("no pod uses the claim yet: with StorageClass %q, the volume is provisioned for the first one", f.Class.Name),
		Next:    []Step{{Text: "create a pod that uses the claim"}}}
	for i := range f.Clients {
		pod := &f.Clients[i]
		if isOver(pod) {
			continue
		}
		found.Summary = fmt.Sprintf("the volume is provisioned for pod %s, for which the scheduler has not selected a node yet", pod.Name)
		found.Next = nil
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				found.State, found.Reason = Failing, c.Message
				found.Next = []Step{{Text: "see what the pod requests", Command: describePod(pod.Namespace, pod.Name)}}
			}
		}
		return found
	}
	return found
}

// notBegun returns why PaV has not begun with a claim that has everything it needs, as far as the objects show.
func notBegun(f *Facts) Finding {
	if warning := lastWarning(f, "PersistentVolumeClaim"); warning != nil {
		found := Finding{Code: "ClaimRefused", State: Failing, Summary: "the claim is refused", Reason: Brief(strings.TrimPrefix(warning.Message, "(combined from similar events): ")),
			Next: []Step{{Text: "create another claim, or have the definition changed"}}}
		if f.hides(hiddenVolumes) {
			// It may also be a later failure, of which the user sees only the event.
			found.Code, found.Summary = "ProvisioningFailed", "no volume could be provisioned yet"
			found.Next = []Step{{Text: "ask the administrator of PavProvisioner " + f.provisionerName()}}
		}
		return found
	}
	if f.hides(hiddenVolumes) {
		return Finding{Code: "Working", State: Working, Summary: "the volume is being provisioned, as far as you may see"}
	}
	found := Finding{Code: "NotBegun", State: Working, Summary: "PaV is about to handle the claim"}
	if f.Now.Sub(f.Claim.CreationTimestamp.Time) > silentAfter {
		return silent(f.AgentNamespace, "PaV does not handle the claim: its controller agent may not be running")
	}
	return found
}

// silentAfter is how long the controller agent may take for its first answer to an object.
const silentAfter = 15 * time.Second

// silent is the finding that the controller agent, which is in a namespace, does not do what it should.
func silent(agents, summary string) Finding {
	return Finding{Code: "ControllerSilent", State: Failing, Summary: summary, Next: []Step{
		{Text: "see whether it runs", Command: "kubectl -n " + agents + " get deployment controller-agent"},
		{Text: "and see its log", Command: "kubectl -n " + agents + " logs -l app.kubernetes.io/component=controller-agent --prefix --tail=20"}}}
}

// lastWarning returns the last warning about an object of a kind, or nil.
func lastWarning(f *Facts, kind string) *corev1.Event {
	var found *corev1.Event
	for i := range f.Events {
		e := &f.Events[i]
		if e.Type != corev1.EventTypeWarning || e.InvolvedObject.Kind != kind {
			continue
		}
		if _, at := times(e); found == nil || at.After(lastTime(found)) {
			found = e
		}
	}
	return found
}
