package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// restores returns a claim of 1Gi that is to be provisioned from a snapshot that is ready.
func restores() snapshot {
	o := provisionable()
	o.provisioner.Spec.VolumeCreation = &pavv1.VolumeCreation{DataSources: []pavv1.DataSourceKind{pavv1.DataSourceSnapshot, pavv1.DataSourceClaim}}
	o.claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new(snapshotv1.GroupName), Kind: protocol.KindSnapshot, Name: "src"}
	o.source = &source{ClaimSource: podplan.ClaimSource{
		Snapshot: &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "src", UID: "s1"},
			Status:     &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: new("content"), ReadyToUse: new(true)},
		},
		Content: &snapshotv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{Name: "content"},
			Spec: snapshotv1.VolumeSnapshotContentSpec{
				Driver: "demo", VolumeSnapshotRef: corev1.ObjectReference{UID: "s1"}, Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: new("h")},
			},
		},
		Record: &pavv1.PavSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "snapshot-s1", UID: "r1"},
			Spec:       pavv1.PavSnapshotSpec{Objects: pavv1.SnapshotObjects{SnapshotClass: &apiextensionsv1.JSON{Raw: []byte(`{"parameters":{"pool":"gold"}}`)}}},
			Status: pavv1.PavSnapshotStatus{
				Phase: pavv1.SnapshotReady, RecordUID: "r1", Handle: "sh", Size: new(resource.MustParse("1Gi")), AccessibleTopology: []pavv1.TopologyLabels{{"zone": "a"}},
			},
		},
	}}
	return o
}

// clones returns a claim of 1Gi that is to be provisioned from another one.
func clones() snapshot {
	o := restores()
	o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: protocol.KindClaim, Name: "src"}
	o.source = &source{ClaimSource: podplan.ClaimSource{
		Claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "src", UID: "c1"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pvc-c1"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		PV: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-c1"},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, ClaimRef: &corev1.ObjectReference{UID: "c1"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: "demo", VolumeHandle: "vh", VolumeAttributes: map[string]string{"pool": "silver"},
				}},
			},
		},
		Volume: &pavv1.PavVolume{Status: pavv1.PavVolumeStatus{Capacity: new(resource.MustParse("1Gi")), AccessibleTopology: []pavv1.TopologyLabels{{"zone": "b"}}}},
	}}
	return o
}

// cache leaves of a source what the cache shows.
func (s *source) cache() {
	s.ClaimSource = podplan.ClaimSource{Cached: true, Snapshot: s.Snapshot, Claim: s.Claim}
}

const (
	ofSnapshot = `spec.dataSourceRef: VolumeSnapshot "apps/src" `
	ofClaim    = `spec.dataSourceRef: PersistentVolumeClaim "apps/src" `
)

func TestDecide_OnSources(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	tests := map[string]struct {
		claim   func() snapshot
		spoil   func(*snapshot)
		message string
	}{
		"a snapshot":                   {claim: restores},
		"a snapshot that was not read": {claim: restores, spoil: func(o *snapshot) { o.source = nil }},
		"a definition without snapshots": {claim: restores, spoil: func(o *snapshot) {
			o.provisioner.Spec.VolumeCreation.DataSources = []pavv1.DataSourceKind{pavv1.DataSourceClaim}
		},
			message: `spec.dataSourceRef: PavProvisioner "demo" cannot fill a new volume from VolumeSnapshot "src": its spec.volumeCreation.dataSources lacks VolumeSnapshot`},
		"a definition without creation": {claim: clones, spoil: func(o *snapshot) { o.provisioner.Spec.VolumeCreation = nil },
			message: `spec.dataSourceRef: PavProvisioner "demo" cannot fill a new volume from PersistentVolumeClaim "src": its spec.volumeCreation.dataSources lacks PersistentVolumeClaim`},
		"a snapshot of another group": {claim: restores, spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.APIGroup = new("example.com") },
			message: `spec.dataSourceRef.apiGroup: must be "snapshot.storage.k8s.io" for the kind VolumeSnapshot`},
		"a claim of another group": {claim: clones, spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.APIGroup = new("example.com") },
			message: `spec.dataSourceRef.apiGroup: must be "" for the kind PersistentVolumeClaim`},
		"a cluster without snapshots":          {claim: restores, spoil: func(o *snapshot) { o.source = &source{ClaimSource: podplan.ClaimSource{NoSnapshots: true}} }, message: ofSnapshot + "cannot exist: the cluster has no definitions of snapshots, see docs/snapshots.md"},
		"a snapshot that does not exist":       {claim: restores, spoil: func(o *snapshot) { o.source = &source{} }, message: ofSnapshot + "does not exist"},
		"a snapshot that is being deleted":     {claim: restores, spoil: func(o *snapshot) { o.source.Snapshot.DeletionTimestamp = new(metav1.Now()) }, message: ofSnapshot + "is being deleted"},
		"a snapshot that is not bound":         {claim: restores, spoil: func(o *snapshot) { o.source.Snapshot.Status = nil; o.source.Content = nil }, message: ofSnapshot + "is not bound to a VolumeSnapshotContent yet"},
		"a snapshot that names another's":      {claim: restores, spoil: func(o *snapshot) { o.source.Content.Spec.VolumeSnapshotRef.UID = "s2" }, message: ofSnapshot + "is not bound to a VolumeSnapshotContent yet"},
		"a snapshot of another driver":         {claim: restores, spoil: func(o *snapshot) { o.source.Content.Spec.Driver = "other" }, message: ofSnapshot + `is a snapshot of the driver "other", not of PavProvisioner "demo"`},
		"a snapshot without a record":          {claim: restores, spoil: func(o *snapshot) { o.source.Record = nil }, message: ofSnapshot + "is not ready to use yet"},
		"a snapshot whose record was restored": {claim: restores, spoil: func(o *snapshot) { o.source.Record.UID = "r2" }, message: ofSnapshot + "has a record that was restored from a backup: another object may have its storage by now"},
		"a snapshot of the cache":              {claim: restores, spoil: func(o *snapshot) { o.source.cache() }},
		"a snapshot of the cache, not bound": {claim: restores, spoil: func(o *snapshot) {
			o.source.Snapshot.Status = nil
			o.source.cache()
		}, message: ofSnapshot + "is not bound to a VolumeSnapshotContent yet"},
		"no snapshot in the cache": {claim: restores, spoil: func(o *snapshot) { o.source.Snapshot = nil; o.source.cache() }, message: ofSnapshot + "does not exist"},
		"a claim of the cache":     {claim: clones, spoil: func(o *snapshot) { o.source.cache() }},
		"a claim of the cache, not bound": {claim: clones, spoil: func(o *snapshot) {
			o.source.Claim.Status.Phase = corev1.ClaimPending
			o.source.cache()
		}, message: ofClaim + "is not bound yet: its phase is Pending"},
		"a claim of a volume that may have grown": {claim: clones, spoil: func(o *snapshot) { o.source.Volume.Status.AttemptedCapacity = new(resource.MustParse("2Gi")) }, message: ofClaim + "has a capacity of 2Gi, and the claim requests 1Gi: request at least as much"},
		"a snapshot that is cut":                  {claim: restores, spoil: func(o *snapshot) { o.source.Record.Status.Phase = pavv1.SnapshotCut }, message: ofSnapshot + "is not ready to use yet"},
		"a snapshot that failed": {claim: restores, spoil: func(o *snapshot) {
			o.source.Record.Status.Phase = pavv1.SnapshotPending
			o.source.Snapshot.Status.Error = &snapshotv1.VolumeSnapshotError{Message: new("exit code 3")}
		}, message: ofSnapshot + "is not ready to use yet: exit code 3"},
		"a snapshot of another mode": {claim: restores, spoil: func(o *snapshot) { o.source.Content.Spec.SourceVolumeMode = &block },
			message: ofSnapshot + `has the volume mode Block, and the claim requests Filesystem: an administrator can allow that with the annotation snapshot.storage.kubernetes.io/allow-volume-mode-change of VolumeSnapshotContent "content"`},
		"a snapshot of another mode, which is allowed": {claim: restores, spoil: func(o *snapshot) {
			o.source.Content.Spec.SourceVolumeMode = &block
			o.source.Content.Annotations = map[string]string{protocol.AllowVolumeModeChange: "true"}
		}},
		"a snapshot that is larger": {claim: restores, spoil: func(o *snapshot) { o.source.Record.Status.Size = new(resource.MustParse("2Gi")) },
			message: ofSnapshot + "has a capacity of 2Gi, and the claim requests 1Gi: request at least as much"},
		"a snapshot whose size is unknown": {claim: restores, spoil: func(o *snapshot) { o.source.Record.Status.Size = nil }},
		"a snapshot that is smaller":       {claim: restores, spoil: func(o *snapshot) { o.source.Record.Status.Size = new(resource.MustParse("1Mi")) }},

		"another claim":                 {claim: clones},
		"a claim that does not exist":   {claim: clones, spoil: func(o *snapshot) { o.source = &source{} }, message: ofClaim + "does not exist"},
		"the claim itself":              {claim: clones, spoil: func(o *snapshot) { o.source.Claim.UID = o.claim.UID }, message: ofClaim + "is the claim itself"},
		"a claim that is being deleted": {claim: clones, spoil: func(o *snapshot) { o.source.Claim.DeletionTimestamp = new(metav1.Now()) }, message: ofClaim + "is being deleted"},
		"a claim that is not bound":     {claim: clones, spoil: func(o *snapshot) { o.source.Claim.Status.Phase = corev1.ClaimPending }, message: ofClaim + "is not bound yet: its phase is Pending"},
		"a claim of another's volume":   {claim: clones, spoil: func(o *snapshot) { o.source.PV.Spec.ClaimRef.UID = "c2" }, message: ofClaim + `is not bound: PersistentVolume "pvc-c1" does not exist, or is another claim's`},
		"a claim without its volume":    {claim: clones, spoil: func(o *snapshot) { o.source.PV = nil; o.source.Claim.Spec.VolumeName = "gone" }, message: ofClaim + `is not bound: PersistentVolume "gone" does not exist, or is another claim's`},
		"a claim of another driver":     {claim: clones, spoil: func(o *snapshot) { o.source.PV.Spec.CSI.Driver = "other" }, message: ofClaim + `has no volume of PavProvisioner "demo"`},
		"a claim of another mode":       {claim: clones, spoil: func(o *snapshot) { o.source.Claim.Spec.VolumeMode = &block }, message: ofClaim + "has the volume mode Block, and the claim requests Filesystem"},
		"a claim of a larger volume":    {claim: clones, spoil: func(o *snapshot) { o.source.Volume.Status.Capacity = new(resource.MustParse("2Gi")) }, message: ofClaim + "has a capacity of 2Gi, and the claim requests 1Gi: request at least as much"},
		"a claim of a static volume":    {claim: clones, spoil: func(o *snapshot) { o.source.Volume = nil }},
		"a static volume on some nodes": {claim: clones, spoil: func(o *snapshot) {
			o.source.Volume = nil
			o.source.PV.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}},
			}}}
		}, message: ofClaim + `has a PersistentVolume whose nodeAffinity PaV cannot apply to pods: only the operator In is supported in "pvc-c1"`},

		"another namespace": {claim: restores, spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.Namespace = new("others") },
			message: "spec.dataSourceRef.namespace: sources in other namespaces are not allowed; to allow them, the administrator sets the option --cross-namespace-sources of PaV's controller agent"},
		"another namespace, without a grant": {claim: restores, spoil: func(o *snapshot) {
			o.claim.Spec.DataSourceRef.Namespace, o.crossNamespace = new("others"), true
		}, message: `spec.dataSourceRef.namespace: no ReferenceGrant in namespace "others" lets claims of namespace "apps" use the source`},
		"another namespace, with a grant": {claim: restores, spoil: func(o *snapshot) {
			o.claim.Spec.DataSourceRef.Namespace, o.crossNamespace, o.source.granted = new("others"), true, true
		}},
		"its own namespace": {claim: restores, spoil: func(o *snapshot) { o.claim.Spec.DataSourceRef.Namespace = new("apps") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := test.claim()
			if test.spoil != nil {
				test.spoil(&o)
			}
			want := decision{action: create}
			if test.message != "" {
				want = decision{refuse, test.message}
			}
			if got := decide(o); got != want {
				t.Errorf("got  %v %q\nwant %v %q", got.action, got.message, want.action, want.message)
			}
		})
	}
}

func TestRecorded_HasWhatTheSourceWas(t *testing.T) {
	for name, test := range map[string]struct {
		claim snapshot
		want  *pavv1.DataSource
	}{
		"no source": {claim: provisionable()},
		"a snapshot": {claim: restores(), want: &pavv1.DataSource{
			Kind: "VolumeSnapshot", Namespace: "apps", Name: "src", UID: "s1", SnapshotName: "snapshot-s1", Handle: "sh", Capacity: new(resource.MustParse("1Gi")),
			Parameters: map[string]string{"pool": "gold"}, AccessibleTopology: []pavv1.TopologyLabels{{"zone": "a"}},
		}},
		"a claim": {claim: clones(), want: &pavv1.DataSource{
			Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "src", UID: "c1", VolumeName: "pvc-c1", Handle: "vh", Capacity: new(resource.MustParse("1Gi")),
			Parameters: map[string]string{"pool": "silver"}, AccessibleTopology: []pavv1.TopologyLabels{{"zone": "b"}},
		}},
	} {
		got, err := test.claim.recorded()
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestPermits(t *testing.T) {
	ref := &corev1.TypedObjectReference{APIGroup: new(snapshotv1.GroupName), Kind: protocol.KindSnapshot, Name: "src"}
	grant := func(from, to map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"from": []any{from}, "to": []any{to}}}
	}
	from := map[string]any{"group": "", "kind": "PersistentVolumeClaim", "namespace": "apps"}
	to := map[string]any{"group": snapshotv1.GroupName, "kind": "VolumeSnapshot"}
	for name, test := range map[string]struct {
		grant map[string]any
		want  bool
	}{
		"all snapshots":        {grant(from, to), true},
		"this snapshot":        {grant(from, map[string]any{"group": snapshotv1.GroupName, "kind": "VolumeSnapshot", "name": "src"}), true},
		"another snapshot":     {grant(from, map[string]any{"group": snapshotv1.GroupName, "kind": "VolumeSnapshot", "name": "other"}), false},
		"claims":               {grant(from, map[string]any{"group": "", "kind": "PersistentVolumeClaim"}), false},
		"another namespace":    {grant(map[string]any{"group": "", "kind": "PersistentVolumeClaim", "namespace": "others"}, to), false},
		"other kinds":          {grant(map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "apps"}, to), false},
		"nothing":              {map[string]any{}, false},
		"something else there": {map[string]any{"spec": map[string]any{"from": "x", "to": []any{1}}}, false},
	} {
		if got := permits(test.grant, "apps", ref); got != test.want {
			t.Errorf("a grant of %s: got %t", name, got)
		}
	}
}
