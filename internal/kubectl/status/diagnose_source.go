package status

import (
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// checkDataSource returns a finding about a claim that PaV has not begun with, if it cannot have what it names as its source. Events say why
// a source of another namespace is refused.
func checkDataSource(f *Facts) *Finding {
	ref := protocol.Source(f.Claim)
	if f.Volume != nil || ref == nil {
		return nil
	}
	if protocol.IsPopulators(ref) {
		return &Finding{Code: "WaitsForPopulator", State: Waiting, Summary: fmt.Sprintf("a volume populator is to fill the volume from %s %q: PaV leaves the claim to it", ref.Kind, ref.Name)}
	}
	if f.Provisioner != nil {
		if message := podplan.CheckSourceKind(f.Provisioner, f.Claim); message != "" {
			return &Finding{Code: "SourceUnsupported", State: Failing, Summary: "the claim is refused", Reason: message,
				Next: []Step{{Text: "create a claim without a source, or have the definition changed", Command: "kubectl edit pavprovisioner " + f.Provisioner.Name}}}
		}
	}
	problem := f.sourceProblem(ref)
	if problem == nil {
		return nil
	}
	name, object := podplan.SourceName(f.Claim), refOfSource(ref.Kind, f.Claim.Namespace, ref.Name)
	found := &Finding{Code: problem.Reason, State: Failing, Summary: fmt.Sprintf("the claim is refused: its source, %s, %s", name, problem.Text),
		Next: []Step{{Text: "create a claim that names another source, or none"}}}
	switch problem.Reason {
	case podplan.SourceMissing:
		found.Summary = fmt.Sprintf("there is no %s, which the claim names as its source", name)
		found.Next = []Step{{Text: "create it, or a claim that names another source", Command: fmt.Sprintf("kubectl get %s -n %s", object.Kind, object.Namespace)}}
	case podplan.SourceNotReady:
		found.State, found.Summary = Waiting, fmt.Sprintf("the volume is created from %s, which %s", name, problem.Text)
		found.Next = []Step{seeSource(object)}
	}
	return found
}

// refOfSource returns a source as users name it.
func refOfSource(kind, namespace, name string) Ref {
	if kind == protocol.KindSnapshot {
		return Ref{Kind: Snapshot, Namespace: namespace, Name: name}
	}
	return Ref{Kind: Claim, Namespace: namespace, Name: name}
}

// seeSource is the step that explains what a source waits for.
func seeSource(ref Ref) Step {
	return Step{Text: "see what the source waits for", Command: "kubectl pav describe " + ref.String()}
}

// sourceProblem returns why the claim cannot have its source, as far as the user may see; nil if nothing is known against it. PaV may have
// begun with a claim whose PavVolume the user may not see, so that only events tell; but not while its source is not ready.
func (f *Facts) sourceProblem(ref *corev1.TypedObjectReference) *podplan.SourceProblem {
	s, ofSnapshot := f.Source, ref.Kind == protocol.KindSnapshot
	own, others := hiddenClaims, []string{hiddenVolumes, hiddenPVs}
	if ofSnapshot {
		own, others = hiddenSnapshots, []string{hiddenVolumes, hiddenContents, hiddenRecords}
	}
	if s == nil || f.hides(own) {
		return nil
	}
	problem := s.Problem(f.provisionerName(), f.Claim)
	switch {
	case !slices.ContainsFunc(others, f.hides):
		return problem
	case s.Snapshot != nil && !isUsable(s.Snapshot):
		return &podplan.SourceProblem{Reason: podplan.SourceNotReady, Text: "is not ready to use yet"}
	case !ofSnapshot && problem != nil && problem.Reason == podplan.SourceNotReady:
		return problem
	default:
		return nil
	}
}

// isUsable reports whether a VolumeSnapshot says that it is ready to use.
func isUsable(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse
}

// waitsForSource returns the finding about a volume that cannot be created from its source now, or nil.
func waitsForSource(f *Facts) *Finding {
	source, status := f.Volume.Spec.Source, &f.Volume.Status
	c := falseCondition(f, pavv1.VolumeProvisioned)
	if source == nil || c == nil || status.Pod != nil && (f.pod(status.Pod) != nil || f.hides(hiddenPods)) {
		return nil
	}
	name := fmt.Sprintf("%s %q", source.Kind, source.Namespace+"/"+source.Name)
	switch c.Reason {
	case "SourceGone":
		return &Finding{Code: c.Reason, State: Failing, Summary: "the volume cannot be created any more, as its source is gone", Reason: c.Message,
			Next: []Step{{Text: "delete the claim", Command: fmt.Sprintf("kubectl delete pvc -n %s %s", f.Volume.Spec.ClaimRef.Namespace, f.Volume.Spec.ClaimRef.Name)}}}
	case "Unsupported":
		return &Finding{Code: c.Reason, State: Failing, Summary: fmt.Sprintf("the volume cannot be created from %s", name), Reason: c.Message, Next: []Step{seeProvisioner(f.provisionerName())}}
	case "SourceNotReady", "VolumeChanges", "StillStaged", "VolumeBusy", "Syncing":
		return &Finding{Code: c.Reason, State: Waiting, Summary: fmt.Sprintf("the volume is created from %s, and waits", name), Reason: Brief(c.Message),
			Next: []Step{seeSource(refOfSource(string(source.Kind), source.Namespace, source.Name))}}
	default:
		return nil
	}
}

// reasonNeededAsSource is the controller agent's reason for a deletion that waits for volumes.
const reasonNeededAsSource = "SourceOfVolumes"

// neededAsSource reports whether a deletion waits for volumes that need the storage as their source.
func neededAsSource(conditions []metav1.Condition, kind string) bool {
	c := findFalse(conditions, kind)
	return c != nil && c.Reason == reasonNeededAsSource
}

// waitsForCopies is the finding about storage whose deletion waits for the volumes that need it as their source.
func waitsForCopies(f *Facts, provisioner, key, what string, c *metav1.Condition) Finding {
	found := Finding{Code: c.Reason, State: Waiting, Summary: what + " is deleted after the volumes that are being created from it"}
	var names []string
	for i := range f.Copies {
		needed := &f.Copies[i]
		if !needed.NeedsSource(provisioner, key) {
			continue
		}
		if !needed.IsInTheMaking() {
			found.Summary = what + " is deleted after the volumes that were created from it, which cannot exist without it"
		}
		ref := needed.Spec.ClaimRef
		if names = append(names, ref.Namespace+"/"+ref.Name); len(names) <= most {
			found.Next = append(found.Next, seeCopy(needed))
		}
	}
	if len(names) == 0 {
		found.Reason = Brief(c.Message)
		return found
	}
	found.Summary += ": " + list("claim", names)
	return found
}

// seeCopy is the step that explains what a volume that is created from another one waits for.
func seeCopy(volume *pavv1.PavVolume) Step {
	ref := volume.Spec.ClaimRef
	return Step{Text: "see how far it is", Command: "kubectl pav describe " + Ref{Kind: Claim, Namespace: ref.Namespace, Name: ref.Name}.String()}
}

// isCopy reports whether a reader of a volume is a volume that is created from it.
func isCopy(reader pavv1.Reader) bool { return reader.Kind == "PavVolume" }

func (f *Facts) copyNamed(name string) *pavv1.PavVolume {
	for i := range f.Copies {
		if f.Copies[i].Name == name {
			return &f.Copies[i]
		}
	}
	return nil
}
