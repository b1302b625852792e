package claim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// provisionable returns a claim that is to be provisioned, for tests to change.
func provisionable() snapshot {
	return snapshot{
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "apps", Name: "data", UID: "u1", ResourceVersion: "7",
				Annotations: map[string]string{protocol.StorageProvisioner: "demo"},
			},
			Spec:   corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		},
		provisioner: &pavv1.PavProvisioner{
			ObjectMeta: metav1.ObjectMeta{Name: "demo"},
			Spec:       pavv1.PavProvisionerSpec{ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic}},
		},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "demo"},
	}
}

func withVolume(o *snapshot, copied string) {
	o.volume = &pavv1.PavVolume{Spec: pavv1.PavVolumeSpec{
		ClaimRef: pavv1.ClaimReference{Namespace: "apps", Name: "data", UID: "u1"},
		Claim:    apiextensionsv1.JSON{Raw: []byte(copied)},
	}}
}

// namesGold makes the claim name the VolumeAttributesClass "gold", which need not exist.
func namesGold(class *storagev1.VolumeAttributesClass) func(*snapshot) {
	return func(o *snapshot) { o.claim.Spec.VolumeAttributesClassName, o.attributesClass = new("gold"), class }
}

func TestDecide(t *testing.T) {
	now := metav1.Now()
	group := "example.com"
	tests := map[string]struct {
		spoil   func(*snapshot)
		want    action
		message string
	}{
		"a claim of a PavProvisioner is provisioned":         {spoil: func(*snapshot) {}, want: create},
		"the older annotation counts, too":                   {spoil: func(o *snapshot) { o.claim.Annotations = map[string]string{protocol.BetaStorageProvisioner: "demo"} }, want: create},
		"a claim of another provisioner is ignored":          {spoil: func(o *snapshot) { o.provisioner = nil }, want: ignore},
		"a bound claim is ignored":                           {spoil: func(o *snapshot) { o.claim.Spec.VolumeName = "pv" }, want: ignore},
		"a lost claim is ignored":                            {spoil: func(o *snapshot) { o.claim.Status.Phase = corev1.ClaimLost }, want: ignore},
		"a claim under deletion is ignored":                  {spoil: func(o *snapshot) { o.claim.DeletionTimestamp = &now }, want: ignore},
		"a forged annotation does not beat the StorageClass": {spoil: func(o *snapshot) { o.class.Provisioner = "other" }, want: ignore},
		"a missing StorageClass is named":                    {spoil: func(o *snapshot) { o.class = nil }, want: refuse, message: `StorageClass "fast" does not exist`},
		"a claim without StorageClass is refused":            {spoil: func(o *snapshot) { o.claim.Spec.StorageClassName = nil }, want: refuse, message: "the claim has no StorageClass; set spec.storageClassName"},
		"the older annotation names the StorageClass": {spoil: func(o *snapshot) {
			o.claim.Annotations[corev1.BetaStorageClassAnnotation] = "fast"
			o.claim.Spec.StorageClassName = nil
		}, want: create},
		"a claim that waits for its first consumer waits":         {spoil: func(o *snapshot) { o.class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer) }, want: ignore},
		"a provisioner under deletion provisions no more volumes": {spoil: func(o *snapshot) { o.provisioner.DeletionTimestamp = &now }, want: refuse, message: `PavProvisioner "demo" is being deleted and provisions no more volumes`},
		"a static provisioner makes no volumes":                   {spoil: func(o *snapshot) { o.provisioner.Spec.ProvisioningModes = []pavv1.ProvisioningMode{"Static"} }, want: refuse, message: `PavProvisioner "demo" does not provision dynamically: its spec.provisioningModes is [Static], without Dynamic`},
		"a selector is refused":                                   {spoil: func(o *snapshot) { o.claim.Spec.Selector = &metav1.LabelSelector{} }, want: refuse, message: "spec.selector: dynamic provisioning cannot honour a selector; remove it"},
		"other sources are left to their populators": {spoil: func(o *snapshot) {
			o.claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: "Backup", Name: "src"}
		}, want: leave},
		"a VolumeAttributesClass that is missing":   {spoil: namesGold(nil), want: refuse, message: `spec.volumeAttributesClassName: VolumeAttributesClass "gold" does not exist: create it, or create the claim again without it`},
		"one of another driver":                     {spoil: namesGold(&storagev1.VolumeAttributesClass{DriverName: "other"}), want: refuse, message: `spec.volumeAttributesClassName: VolumeAttributesClass "" is for volumes of the driver "other", not of PavProvisioner "demo"`},
		"one of a provisioner without modification": {spoil: namesGold(&storagev1.VolumeAttributesClass{DriverName: "demo"}), want: refuse, message: `spec.volumeAttributesClassName: PavProvisioner "demo" has no spec.volumeModification, so that its volumes cannot have the attributes of VolumeAttributesClass ""`},
		"one that the provisioner knows": {spoil: func(o *snapshot) {
			namesGold(&storagev1.VolumeAttributesClass{DriverName: "demo", Parameters: map[string]string{"iops": "1"}})(o)
			o.provisioner.Spec.VolumeModification = &pavv1.VolumeModification{Parameters: []string{"iops"}}
		}, want: create},
		"allowed topologies are the volume's business":       {spoil: func(o *snapshot) { o.class.AllowedTopologies = make([]corev1.TopologySelectorTerm, 1) }, want: create},
		"a provisioner that cannot be used says why":         {spoil: notAccepted, want: refuse, message: `PavProvisioner "demo" cannot be used: its name is taken`},
		"the copy of a claim that has changed is brought up": {spoil: func(o *snapshot) { withVolume(o, `{"metadata":{"resourceVersion":"6"}}`) }, want: copyClaim},
		"the copy follows a bound claim, too":                {spoil: func(o *snapshot) { withVolume(o, `{}`); o.claim.Spec.VolumeName = "pvc-u1" }, want: copyClaim},
		"a copy that is up to date stays":                    {spoil: func(o *snapshot) { withVolume(o, `{"metadata":{"resourceVersion":"7"}}`) }, want: ignore},
		"the copy of a claim under deletion stays":           {spoil: func(o *snapshot) { withVolume(o, `{}`); o.claim.DeletionTimestamp = &now }, want: ignore},
		"the PavVolume of another claim is left alone":       {spoil: func(o *snapshot) { withVolume(o, `{}`); o.volume.Spec.ClaimRef.UID = "u0" }, want: ignore},
		"a claim whose first consumer has a node is provided": {spoil: func(o *snapshot) {
			o.class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
			o.claim.Annotations[protocol.SelectedNode] = "n1"
		}, want: create},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := provisionable()
			test.spoil(&o)
			if got := decide(o); got != (decision{test.want, test.message}) {
				t.Errorf("got %+v, want {%s %s}", got, test.want, test.message)
			}
		})
	}
}

func notAccepted(o *snapshot) {
	o.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionFalse, Message: "its name is taken"}}
}
