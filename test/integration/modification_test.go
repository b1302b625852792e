package integration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// modifiable gives a provisioner modification pods, which have an annotation of what they see, and creation pods with one.
func modifiable(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
	p.Spec.VolumeModification = &pavv1.VolumeModification{Parameters: []string{"iops"}, PodTemplate: field(`{
		"metadata": {"annotations": {"sees": "{{ handle == pv.spec.csi.volumeHandle }} {{ oldAttributes.iops | default('none') }} {{ attributes.iops }} {{ params.pool }} {{ pvc.metadata.name }}"}},
		"spec": {"containers": [{"name": "main", "image": "none"}]}
	}`)}
	p.Spec.VolumeCreation.PodTemplate = field(`{
		"metadata": {"annotations": {"sees": "{{ attributes.iops | default('none') }} {{ params.iops }} {{ params.pool }}"}},
		"spec": {"containers": [{"name": "main", "image": "none"}]}
	}`)
	s.Parameters = map[string]string{"pool": "fast", "iops": "1"}
}

// hasAttributesClasses reports whether the API server has VolumeAttributesClasses, as from 1.34 on.
func hasAttributesClasses(c *cluster) bool { return c.Minor >= 34 }

// An API server that has no VolumeAttributesClasses drops their names from claims, which get volumes without attributes.
func testWithoutAttributesClasses(t *testing.T, c *cluster) {
	t.Helper()
	const name = "never-modified"
	driver(t, c, name, modifiable, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeCreation.PodTemplate = nil })
	claim := mustCreate(t, c, withAttributes(claimOf(name, name), name))
	pv, volume := bound(t, c, claim)
	if pv.Spec.VolumeAttributesClassName != nil || volume.Status.Attributes != nil {
		t.Errorf("the PersistentVolume names the class %v, and the volume has the attributes %v", pv.Spec.VolumeAttributesClassName, volume.Status.Attributes)
	}
	mustDelete(t, c, claim)
	gone(t, c, pv)
}

// attributesClass makes a VolumeAttributesClass with one parameter, which is gone when the test ends.
func attributesClass(t *testing.T, c *cluster, driver, name, key, value string) {
	t.Helper()
	class := mustCreate(t, c, &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: driver, Parameters: map[string]string{key: value}})
	t.Cleanup(func() {
		if err := c.Admin.Delete(lasting(t), class); err != nil {
			t.Error(err)
		}
		gone(t, c, class)
	})
}

func withAttributes(claim *corev1.PersistentVolumeClaim, class string) *corev1.PersistentVolumeClaim {
	claim.Spec.VolumeAttributesClassName = &class
	return claim
}

func namesClass(class string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { withAttributes(claim, class) }
}

// attributesSaid are what the status of a claim says of the attributes of its volume.
func attributesSaid(claim *corev1.PersistentVolumeClaim) string {
	words := []string{ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "none")}
	if m := claim.Status.ModifyVolumeStatus; m != nil {
		words = append(words, "to "+m.TargetVolumeAttributesClassName, string(m.Status))
	}
	for _, c := range claim.Status.Conditions {
		words = append(words, strings.TrimSpace(string(c.Type)+" "+c.Message))
	}
	return strings.Join(words, ", ")
}

// wantAttributes waits until a claim says something of its attributes; with a dot at the end, nothing else.
func wantAttributes(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, want string) {
	t.Helper()
	exists(t, c, claim, "says "+want, func(claim *corev1.PersistentVolumeClaim) bool {
		return strings.HasPrefix(attributesSaid(claim)+".", want)
	})
}

func TestModification_OfAVolume_FromItsCreation(t *testing.T) {
	c := start(t)
	run(t, c)
	if !hasAttributesClasses(c) {
		testWithoutAttributesClasses(t, c)
		return
	}
	driver(t, c, "modified", modifiable)
	claim := mustCreate(t, c, withAttributes(ownedClaim("modified", "me"), "silver"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `VolumeAttributesClass "silver" does not exist`)
	attributesClass(t, c, "modified", "silver", "iops", "100")
	creation, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	if got, want := creation.Annotations["sees"], "100 100 fast"; got != want {
		t.Errorf("the creation pod sees %q, want %q", got, want)
	}
	end(t, c, creation, workflow.Result{}, 0)
	pv, volume := bound(t, c, claim)
	if got := ptr.Deref(pv.Spec.VolumeAttributesClassName, ""); got != "silver" {
		t.Errorf("the PersistentVolume names the class %q", got)
	}
	wantAttributes(t, c, claim, "silver.")

	mustPatch(t, c, claim, namesClass("gold"))
	wantEvent(t, c, claim, "Warning", "VolumeModifyFailed", `VolumeAttributesClass "gold" does not exist`)
	wantAttributes(t, c, claim, "silver, to gold, Pending.")
	attributesClass(t, c, "modified", "gold", "iops", "1000")
	pod, _ := podOf(t, c, claim, pavv1.WorkflowModification)
	if got, want := pod.Annotations["sees"], "True 100 1000 fast data"; got != want {
		t.Errorf("the modification pod sees %q, want %q", got, want)
	}
	wantAttributes(t, c, claim, "silver, to gold, InProgress, ModifyingVolume.")
	end(t, c, pod, workflow.Result{}, 0)
	wantAttributes(t, c, claim, "gold.")
	exists(t, c, pv, "names gold", func(pv *corev1.PersistentVolume) bool {
		return ptr.Deref(pv.Spec.VolumeAttributesClassName, "") == "gold"
	})
	exists(t, c, volume, "has no modification", func(v *pavv1.PavVolume) bool {
		return v.Status.Modification == nil && v.Status.Pod == nil && v.Status.Step == "" && meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeModified) == nil
	})
	if diff := cmp.Diff(&pavv1.VolumeAttributes{Class: "gold", Parameters: map[string]string{"iops": "1000"}}, volume.Status.Attributes); diff != "" {
		t.Errorf("the recorded attributes (-want +got):\n%s", diff)
	}
	wantEvent(t, c, claim, "Normal", "VolumeModify", `is modifying the volume to VolumeAttributesClass "gold"`)
	wantEvent(t, c, claim, "Normal", "VolumeModifySuccessful", `the attributes of VolumeAttributesClass "gold"`)
	mustDelete(t, c, claim)
	gone(t, c, pv)
	noPodIsLeft(t, c)
}

// A claim changes its mind while modifications fail. The volume has no attributes at first.
func TestModification_ThatFails_IsTriedAgainOrToAnotherClass(t *testing.T) {
	c := start(t)
	if !hasAttributesClasses(c) {
		return // TestModification_OfAVolume_FromItsCreation shows what follows from that
	}
	run(t, c)
	driver(t, c, "hardly-modified", func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		modifiable(p, s)
		p.Spec.VolumeCreation.PodTemplate = nil
	})
	attributesClass(t, c, "hardly-modified", "fast", "iops", "9")
	attributesClass(t, c, "hardly-modified", "large", "size", "9")
	attributesClass(t, c, "other", "foreign", "iops", "9")
	claim := mustCreate(t, c, ownedClaim("hardly-modified", "me"))
	_, volume := bound(t, c, claim)

	mustPatch(t, c, claim, namesClass("large"))
	wantAttributes(t, c, claim, `none, to large, Infeasible, ModifyVolumeError VolumeAttributesClass "large": parameters[size]: spec.volumeModification.parameters of PavProvisioner "hardly-modified" has only iops.`)
	wantEvent(t, c, claim, "Warning", "VolumeModifyFailed", "parameters[size]")
	mustPatch(t, c, claim, namesClass("foreign"))
	wantAttributes(t, c, claim, `none, to foreign, Infeasible, ModifyVolumeError VolumeAttributesClass "foreign" is for volumes of the driver "other"`)
	mustPatch(t, c, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = nil })
	wantAttributes(t, c, claim, "none.")

	mustPatch(t, c, claim, namesClass("fast"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowModification)
	end(t, c, pod, workflow.Result{Error: "the array is busy"}, 3)
	wantAttributes(t, c, claim, "none, to fast, InProgress, ModifyingVolume, ModifyVolumeError pod pav-pods/"+pod.Name)
	wantEvent(t, c, claim, "Warning", "VolumeModifyFailed", "the array is busy")
	exists(t, c, volume, "is tried again", func(v *pavv1.PavVolume) bool {
		return v.Status.Modification != nil && v.Status.Modification.Attempt == 2 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})
	second, _ := podOf(t, c, claim, pavv1.WorkflowModification)
	text := "no such tier"
	end(t, c, second, workflow.Result{Infeasible: &text}, 1)
	wantAttributes(t, c, claim, "none, to fast, Infeasible, ModifyVolumeError")
	wantEvent(t, c, claim, "Warning", "VolumeModifyFailed", "no such tier; see kubectl logs -n pav-pods "+second.Name)

	// The volume never had a class, so that the claim can name none again.
	mustPatch(t, c, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = nil })
	wantAttributes(t, c, claim, "none.")
	exists(t, c, volume, "has no modification", func(v *pavv1.PavVolume) bool { return v.Status.Modification == nil && v.Status.Attributes == nil })
	mustPatch(t, c, claim, namesClass("fast"))
	third, _ := podOf(t, c, claim, pavv1.WorkflowModification)
	end(t, c, third, workflow.Result{}, 0)
	wantAttributes(t, c, claim, "fast.")
	mustDelete(t, c, claim)
	gone(t, c, volume)
	noPodIsLeft(t, c)
}

// A pod that has started is seen to its end before the storage is deleted.
func TestModification_OfAVolumeThatIsDeleted_EndsFirst(t *testing.T) {
	c := start(t)
	if !hasAttributesClasses(c) {
		return // TestModification_OfAVolume_FromItsCreation shows what follows from that
	}
	run(t, c)
	driver(t, c, "modified-to-the-end", func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		modifiable(p, s)
		p.Spec.VolumeCreation.PodTemplate = nil
	}, withDeletionPod)
	attributesClass(t, c, "modified-to-the-end", "fast", "iops", "9")
	claim := mustCreate(t, c, ownedClaim("modified-to-the-end", "me"))
	pv, volume := bound(t, c, claim)
	mustPatch(t, c, claim, namesClass("fast"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowModification)
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	// An agent that knows the outcome of a later pod knows that this one runs.
	other := ownedClaim("modified-to-the-end", "me")
	other.Name = "other"
	mustCreate(t, c, other)
	otherPV, witness := bound(t, c, other)
	mustPatch(t, c, other, namesClass("fast"))
	later, _ := podOf(t, c, other, pavv1.WorkflowModification)
	end(t, c, later, workflow.Result{}, 0)
	exists(t, c, witness, "is modified", func(v *pavv1.PavVolume) bool { return v.Status.Attributes != nil })
	mustDelete(t, c, claim)
	gone(t, c, claim)
	exists(t, c, pv, "is released", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeReleased })
	exists(t, c, volume, "is still modified", func(v *pavv1.PavVolume) bool {
		return v.Status.Step == pavv1.StepModifying && v.Status.Pod != nil && v.Status.Phase == pavv1.VolumeReady
	})
	end(t, c, pod, workflow.Result{}, 0)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
	deleteVolume(t, c, other, otherPV)
}

// The agent is stopped after each of its writes in turn (in the short suite, after every twelfth) while a volume is created with
// attributes and gets others, with and without a failure in the middle: each pod runs exactly once.
func TestModification_WithAnAgentThatIsStoppedAfterEachWrite(t *testing.T) {
	c := start(t)
	if !hasAttributesClasses(c) {
		return // TestModification_OfAVolume_FromItsCreation shows what follows from that
	}
	attributesClass(t, c, "crash-modified", "slow", "iops", "1")
	attributesClass(t, c, "crash-modified", "fast", "iops", "9")
	for name, failures := range map[string]int{"all succeed": 0, "the first modification fails": 1} {
		t.Run(name, func(t *testing.T) {
			stopAfterEachWrite(t, c, 12, func(t *testing.T) {
				t.Helper()
				h := runFakeKubelets(t, c, func(kind string, number int) int32 {
					if kind == pavv1.WorkflowModification && number <= failures {
						return 3
					}
					return 0
				})
				modifyAndDelete(t, c)
				want := map[string]int{"validate": 1, "create": 1, "modify": 1 + failures, "delete": 1}
				if diff := cmp.Diff(want, h.rest()); diff != "" {
					t.Errorf("pods (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// modifyAndDelete takes a volume of a provisioner with all pods through a life in which its attributes change.
func modifyAndDelete(t *testing.T, c *cluster) {
	t.Helper()
	const name = "crash-modified"
	driver(t, c, name, func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		modifiable(p, s)
		withAllPods(p)
	})
	exists(t, c, provisionerOf(name), "is there", func(*pavv1.PavProvisioner) bool { return true })
	claim := mustCreate(t, c, withAttributes(claimOf(name, name), "slow"))
	pv, volume := bound(t, c, claim)
	wantAttributes(t, c, claim, "slow.")
	mustPatch(t, c, claim, namesClass("fast"))
	wantAttributes(t, c, claim, "fast.")
	exists(t, c, pv, "names the class", func(pv *corev1.PersistentVolume) bool {
		return ptr.Deref(pv.Spec.VolumeAttributesClassName, "") == "fast"
	})
	exists(t, c, volume, "has the attributes", func(v *pavv1.PavVolume) bool {
		return v.Status.Attributes != nil && v.Status.Attributes.Parameters["iops"] == "9" && v.Status.Modification == nil
	})
	mustDelete(t, c, claim)
	gone(t, c, pv)
	gone(t, c, volume)
	noPodIsLeft(t, c)
}
