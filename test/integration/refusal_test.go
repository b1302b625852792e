package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// refusal is a claim that must not be provisioned, and the message for its user.
type refusal struct {
	provisioner func(*pavv1.PavProvisioner)
	class       func(*storagev1.StorageClass)
	claim       func(*corev1.PersistentVolumeClaim)
	eventType   string // Warning unless set
	reason      string // ProvisioningFailed unless set
	message     string
	// since is the first minor version of Kubernetes whose API server keeps the field. Older ones drop it.
	since int
}

var refusals = map[string]refusal{
	"selector": {
		claim:   func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} },
		message: "spec.selector: dynamic provisioning cannot honour a selector; remove it",
	},
	"clone": {
		claim: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "src"}
		},
		message: `spec.dataSourceRef: PavProvisioner "refuse-clone" cannot fill a new volume from PersistentVolumeClaim "src"`,
	},
	"snapshot": {
		claim: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "src"}
		},
		message: `cannot fill a new volume from VolumeSnapshot "src"`,
	},
	"populator": {
		claim: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("backup.example.com"), Kind: "Backup", Name: "src"}
		},
		eventType: "Normal", reason: "Provisioning", message: "Assuming an external populator will provision the volume",
	},
	"attributes": {
		claim:   func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("gold") },
		message: `spec.volumeAttributesClassName: VolumeAttributesClass "gold" does not exist`,
		since:   34,
	},
	"static": {
		provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.ProvisioningModes, p.Spec.VolumeCreation = []pavv1.ProvisioningMode{pavv1.ProvisioningModeStatic}, nil
		},
		message: `PavProvisioner "refuse-static" does not provision dynamically`,
	},
	"topologies": {
		class: func(s *storagev1.StorageClass) {
			s.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
		},
		provisioner: func(p *pavv1.PavProvisioner) { p.Spec.VolumeCreation.AccessibleTopology = field(`[{"zone": "c"}]`) },
		message:     `spec.volumeCreation.accessibleTopology: the volume can be used from nodes with zone=c, none of which the allowedTopologies of the StorageClass allow`,
	},
	"parameter": {
		class: func(s *storagev1.StorageClass) {
			s.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s3cr3t"}
		},
		message: `StorageClass "refuse-parameter": parameters[csi.storage.k8s.io/provisioner-secret-name]: PaV does not support this reserved parameter`,
	},
	"mode": {
		claim:   func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		message: `PavProvisioner "refuse-mode": the claim asks for volume mode Block, but the provisioner supports only Filesystem`,
	},
	"access": {
		provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.VolumeValidation = &pavv1.VolumeValidation{AccessModes: field(`["ReadWriteOnce"]`)}
		},
		claim: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
		message: `PavProvisioner "refuse-access": the claim asks for access mode ReadWriteMany, but the provisioner supports only ReadWriteOnce`,
	},
	"least": {
		provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.VolumeValidation = &pavv1.VolumeValidation{MinCapacity: field(`"10Gi"`)}
		},
		claim: func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		},
		message: "the claim limits its capacity to 2Gi, but the provisioner's volumes have at least 10Gi",
	},
	"most": {
		provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.VolumeValidation = &pavv1.VolumeValidation{MaxCapacity: field(`"512Mi"`)}
		},
		message: "the claim requests a capacity of 1Gi, but the provisioner's volumes have at most 512Mi",
	},
	"capacity": {
		provisioner: func(p *pavv1.PavProvisioner) { p.Spec.VolumeCreation.Capacity = field(`"512Mi"`) },
		message:     "spec.volumeCreation.capacity: the volume would have a capacity of 512Mi, but the claim requests 1Gi",
	},
	"handle": {
		provisioner: func(p *pavv1.PavProvisioner) { p.Spec.VolumeCreation.Handle = field(`"a\nb"`) },
		message:     `spec.volumeCreation.handle: the handle "a\nb" has control characters`,
	},
	"template": {
		provisioner: func(p *pavv1.PavProvisioner) { p.Spec.VolumeCreation.Handle = field(`"{{ nope.nope }}"`) },
		message:     `PavProvisioner "refuse-template": spec.volumeCreation.handle: line 1, column 4: 'nope' is undefined`,
	},
	"validation-pod": {
		provisioner: func(p *pavv1.PavProvisioner) {
			p.Spec.VolumeValidation = &pavv1.VolumeValidation{PodTemplate: field(`{}`)}
		},
		message: "spec.volumeValidation.podTemplate.spec.containers: a pod needs at least one container",
	},
	"creation-pod": {
		provisioner: func(p *pavv1.PavProvisioner) { p.Spec.VolumeCreation.PodTemplate = field(`{}`) },
		message:     "spec.volumeCreation.podTemplate.spec.containers: a pod needs at least one container",
	},
}

func TestRefusals(t *testing.T) {
	c := start(t)
	run(t, c)
	for name, test := range refusals {
		if c.Minor < test.since {
			continue
		}
		t.Run(name, func(t *testing.T) {
			driver(t, c, "refuse-"+name, func(p *pavv1.PavProvisioner, class *storagev1.StorageClass) {
				if test.provisioner != nil {
					test.provisioner(p)
				}
				if test.class != nil {
					test.class(class)
				}
			})
			claim := claimOf("refuse-"+name, name)
			if test.claim != nil {
				test.claim(claim)
			}
			mustCreate(t, c, claim)
			eventType, reason := "Warning", "ProvisioningFailed"
			if test.reason != "" {
				eventType, reason = test.eventType, test.reason
			}
			wantEvent(t, c, claim, eventType, reason, test.message)
			err := c.Admin.Get(t.Context(), client.ObjectKey{Name: "pvc-" + string(claim.UID)}, &corev1.PersistentVolume{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("a refused claim has a PersistentVolume (%v)", err)
			}
		})
	}
}

func TestMissingStorageClass_IsReported_AndClaimRecovers(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "classless")
	claim := claimOf("comes-later", "data")
	// The PersistentVolume controller writes the annotation only once the class is there.
	claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": provisioner.Name}
	mustCreate(t, c, claim)
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `StorageClass "comes-later" does not exist`)
	class := classOf(provisioner.Name)
	class.Name = "comes-later"
	mustCreate(t, c, class)
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), class) })
	bound(t, c, claim)
	mustDelete(t, c, claim)
	gone(t, c, claim)
}
