package status

import (
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
)

// diagnoseUnbegun returns what a snapshot waits for of which PaV has no record yet.
func diagnoseUnbegun(f *Facts) Finding {
	for _, check := range []func(*Facts) *Finding{checkContent, checkSource, checkSnapshotClass, checkSnapshotProvisioner} {
		if found := check(f); found != nil {
			return *found
		}
	}
	content := f.Snapshot.Content
	switch {
	case content == nil:
		return snapshotUnbound(f)
	case content.Status != nil && content.Status.Error != nil:
		return Finding{Code: "SnapshotRefused", State: Failing, Summary: "the snapshot is refused", Reason: errorOf(content.Status.Error)}
	case f.Now.Sub(content.CreationTimestamp.Time) > silentAfter:
		return silent(f.AgentNamespace, "PaV does not handle the VolumeSnapshotContent: its controller agent may not be running")
	}
	return Finding{Code: "NotBegun", State: Working, Summary: "PaV is about to handle the VolumeSnapshotContent"}
}

// checkContent returns a finding if the VolumeSnapshotContent that an administrator was to write does not exist.
func checkContent(f *Facts) *Finding {
	s := f.Snapshot
	if s.Content != nil || s.Object == nil || s.Object.Spec.Source.VolumeSnapshotContentName == nil || f.hides(hiddenContents) {
		return nil
	}
	return &Finding{Code: "NoContent", State: Failing, Summary: fmt.Sprintf("there is no VolumeSnapshotContent %q", *s.Object.Spec.Source.VolumeSnapshotContentName),
		Next: []Step{{Text: "create it, or correct the name", Command: "kubectl get volumesnapshotcontents"}}}
}

// checkSource returns a finding if there is no volume to make a snapshot of.
func checkSource(f *Facts) *Finding {
	s := f.Snapshot
	name := s.claim()
	if s.Content != nil || name == "" || f.hides(hiddenClaims) {
		return nil
	}
	switch {
	case f.Claim == nil:
		return &Finding{Code: "NoClaim", State: Failing, Summary: fmt.Sprintf("there is no claim %q to make a snapshot of", name),
			Next: []Step{{Text: "create a VolumeSnapshot of another claim", Command: "kubectl get pvc -n " + s.Object.Namespace}}}
	case f.Claim.Status.Phase != corev1.ClaimBound:
		return &Finding{Code: "ClaimNotBound", State: Waiting, Summary: fmt.Sprintf("the snapshot is made when claim %q has a volume", name),
			Next: []Step{{Text: "see what the claim waits for", Command: "kubectl pav describe " + Ref{Kind: Claim, Namespace: f.Claim.Namespace, Name: name}.String()}}}
	case f.PV != nil && f.PV.Spec.CSI == nil:
		return &Finding{Code: NotPaV, State: Waiting, Summary: "the volume of the claim is not PaV's, and has no CSI driver"}
	}
	return nil
}

// checkSnapshotClass returns a finding if the VolumeSnapshotClass is missing, or is of another driver than the volume.
func checkSnapshotClass(f *Facts) *Finding {
	s := f.Snapshot
	if s.Content != nil || s.claim() == "" || f.hides(hiddenSnapshotClasses) {
		return nil
	}
	see := []Step{{Text: "create it, or a VolumeSnapshot with another one", Command: "kubectl get volumesnapshotclasses"}}
	name, driver := s.className(), f.provisionerName()
	switch {
	case name == "" && s.DefaultClass == "" && driver != "":
		return &Finding{Code: "NoDefaultClass", State: Failing, Summary: fmt.Sprintf("the VolumeSnapshot names no VolumeSnapshotClass, and there is no default one with the driver %q", driver), Next: see}
	case name == "":
		return nil
	case s.Class == nil:
		return &Finding{Code: "NoSnapshotClass", State: Failing, Summary: fmt.Sprintf("there is no VolumeSnapshotClass %q", name), Next: see}
	case driver != "" && s.Class.Driver != driver:
		return &Finding{Code: "ClassOfAnotherDriver", State: Failing, Summary: fmt.Sprintf("VolumeSnapshotClass %q is for the driver %q, and the volume has %q", name, s.Class.Driver, driver),
			Next: []Step{{Text: "create a VolumeSnapshot with another class", Command: "kubectl get volumesnapshotclasses"}}}
	}
	return nil
}

// checkSnapshotProvisioner returns a finding if the driver is not PaV's, or makes no snapshots.
func checkSnapshotProvisioner(f *Facts) *Finding {
	name, p := f.provisionerName(), f.Provisioner
	switch {
	case name == "" || p == nil && f.hides(hiddenProvisioners):
		return nil
	case p == nil:
		found := noProvisioner(f)
		return &found
	case p.Spec.SnapshotCreation == nil && (f.Snapshot.Content == nil || f.Snapshot.Content.Spec.Source.VolumeHandle != nil):
		found := snapshotsUnsupported(f)
		return &found
	}
	return nil
}

func snapshotsUnsupported(f *Facts) Finding {
	name := f.provisionerName()
	return Finding{Code: "SnapshotsUnsupported", State: Failing, Summary: fmt.Sprintf("PavProvisioner %q has no spec.snapshotCreation, so that its volumes cannot be snapshotted", name),
		Next: []Step{{Text: "add spec.snapshotCreation and spec.snapshotDeletion to the definition", Command: "kubectl edit pavprovisioner " + name}}}
}

// snapshotUnbound is the finding about a VolumeSnapshot for which the snapshot-controller has not made a VolumeSnapshotContent yet.
func snapshotUnbound(f *Facts) Finding {
	object := f.Snapshot.Object
	switch {
	case object != nil && object.Status != nil && object.Status.Error != nil:
		return Finding{Code: "SnapshotRefused", State: Failing, Summary: "the snapshot-controller refuses the VolumeSnapshot", Reason: errorOf(object.Status.Error)}
	case object != nil && f.Now.Sub(object.CreationTimestamp.Time) > silentAfter:
		return noSnapshotController("nothing handles the VolumeSnapshot")
	}
	return Finding{Code: "NotBegun", State: Working, Summary: "the snapshot-controller is about to handle the VolumeSnapshot"}
}

// noSnapshotController is the finding that the add-on does not do what it should.
func noSnapshotController(summary string) Finding {
	return Finding{Code: "NoSnapshotController", State: Failing, Summary: summary + ": the cluster's snapshot-controller may not be running",
		Next: []Step{
			{Text: "see whether it runs", Command: "kubectl get pods -A -l app.kubernetes.io/name=snapshot-controller"},
			{Text: "if there is none, install it: it is an add-on of the cluster, one for all drivers, of https://github.com/kubernetes-csi/external-snapshotter"},
		}}
}

func errorOf(e *snapshotv1.VolumeSnapshotError) string {
	if e.Message == nil {
		return ""
	}
	return Brief(*e.Message)
}
