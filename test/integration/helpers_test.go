package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	interval = 20 * time.Millisecond
	deadline = 5 * time.Minute // on a machine that is much slower than others
)

// lasting returns a context that outlives the test's own, for cleaning up.
func lasting(tb testing.TB) context.Context {
	tb.Helper()
	return context.WithoutCancel(tb.Context())
}

// eventually waits until a condition is true; state describes the state for the message if it never is.
func eventually(tb testing.TB, what string, condition func(context.Context) (done bool, state string)) {
	tb.Helper()
	state := ""
	// The call that is under way at the deadline still ends, so that the failure shows the last state.
	calls, cancel := context.WithTimeout(lasting(tb), deadline+interval+10*time.Second)
	defer cancel()
	err := wait.PollUntilContextTimeout(calls, interval, deadline, true, func(context.Context) (bool, error) {
		done, s := condition(calls)
		state = s
		return done, nil
	})
	if err != nil {
		tb.Fatalf("waited %s in vain until %s: %s", deadline, what, state)
	}
}

// mustCreate creates an object.
func mustCreate[T client.Object](tb testing.TB, c *cluster, object T) T {
	tb.Helper()
	if err := c.Admin.Create(tb.Context(), object); err != nil {
		tb.Fatal(err)
	}
	return object
}

func mustDelete(t *testing.T, c *cluster, object client.Object) {
	t.Helper()
	if err := c.Admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// mustPatch changes an object, as it is now.
func mustPatch[T client.Object](t *testing.T, c *cluster, object T, change func(T)) {
	t.Helper()
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before, _ := object.DeepCopyObject().(client.Object)
	change(object)
	if err := c.Admin.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// gone waits until an object does not exist.
func gone(tb testing.TB, c *cluster, object client.Object) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) (bool, string) {
		err := c.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprintf("%v, deleted %v, finalizers %v", err, object.GetDeletionTimestamp(), object.GetFinalizers())
	})
}

// exists waits until an object does, and something is true of it.
func exists[T client.Object](tb testing.TB, c *cluster, object T, what string, condition func(T) bool) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%T %s: %s", object, object.GetName(), what), func(ctx context.Context) (bool, string) {
		err := c.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil && condition(object), fmt.Sprintf("%v %+v", err, object)
	})
}

func field(text string) *pavv1.Template { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// provisionerOf returns a provisioner whose volumes take no work to create.
func provisionerOf(name string) *pavv1.PavProvisioner {
	return &pavv1.PavProvisioner{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: pavv1.PavProvisionerSpec{
			ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic},
			VolumeCreation:    &pavv1.VolumeCreation{Capacity: field(`"{{ requestedMinCapacity }}"`)},
			VolumeStaging:     pavv1.VolumeStaging{PodTemplate: *field(`{"spec": {"containers": [{"name": "stage", "image": "busybox:1.37.0"}]}}`)},
		},
	}
}

func classOf(provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:    metav1.ObjectMeta{Name: provisioner},
		Provisioner:   provisioner,
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete),
	}
}

func claimOf(class, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// driver is what most tests have: a provisioner and a class of its name, gone when the test ends.
func driver(t *testing.T, c *cluster, name string, changes ...func(*pavv1.PavProvisioner, *storagev1.StorageClass)) *pavv1.PavProvisioner {
	t.Helper()
	provisioner, class := provisionerOf(name), classOf(name)
	for _, change := range changes {
		change(provisioner, class)
	}
	mustCreate(t, c, provisioner)
	mustCreate(t, c, class)
	t.Cleanup(func() { tearDown(t, c, provisioner, class) })
	return provisioner
}

// tearDown deletes what a driver test made and checks that nothing is left of it.
func tearDown(t *testing.T, c *cluster, provisioner *pavv1.PavProvisioner, class *storagev1.StorageClass) {
	t.Helper()
	ctx := lasting(t)
	deleteAll := func(list client.ObjectList, mine func(client.Object) bool) {
		if err := c.Admin.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		eachItem(t, list, func(object client.Object) {
			if !mine(object) {
				return
			}
			if err := c.Admin.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
			gone(t, c, object) //nolint:contextcheck // it has its own deadline
		})
	}
	deleteAll(&corev1.PersistentVolumeClaimList{}, func(o client.Object) bool {
		claim, _ := o.(*corev1.PersistentVolumeClaim)
		return ptr.Deref(claim.Spec.StorageClassName, "") == class.Name
	})
	deleteAll(&corev1.PersistentVolumeList{}, func(o client.Object) bool {
		pv, _ := o.(*corev1.PersistentVolume)
		return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == provisioner.Name
	})
	for _, object := range []client.Object{class, provisioner} {
		if err := c.Admin.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		gone(t, c, object)
	}
	deleteAll(&pavv1.PavVolumeList{}, func(o client.Object) bool {
		volume, _ := o.(*pavv1.PavVolume)
		mine := volume.Spec.Provisioner == provisioner.Name
		switch {
		case !mine || volume.Status.Phase == pavv1.VolumeRetained:
		case len(volume.Finalizers) == 0:
			gone(t, c, volume) // The agent removes the finalizer first, and then the PavVolume.
		default:
			t.Errorf("PavVolume %s is left in phase %s", volume.Name, volume.Status.Phase)
		}
		return mine
	})
}

func eachItem(tb testing.TB, list client.ObjectList, visit func(client.Object)) {
	tb.Helper()
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			visit(object)
		}
		return nil
	})
	if err != nil {
		tb.Error(err)
	}
}

// awaitBound waits until a claim is bound.
func awaitBound(tb testing.TB, c *cluster, claim *corev1.PersistentVolumeClaim) {
	tb.Helper()
	exists(tb, c, claim, "is bound", func(claim *corev1.PersistentVolumeClaim) bool { return claim.Status.Phase == corev1.ClaimBound })
}

// bound waits until a claim is bound, and returns its volumes.
func bound(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, *pavv1.PavVolume) {
	t.Helper()
	awaitBound(t, c, claim)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	exists(t, c, pv, "is bound", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeBound })
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	exists(t, c, volume, "is ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
	return pv, volume
}

// wantEvent waits for an event on an object.
func wantEvent(t *testing.T, c *cluster, object client.Object, eventType, reason, message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("there is an event %s %s: %s", eventType, reason, message), func(ctx context.Context) (bool, string) {
		var seen []string
		for _, e := range eventsOf(ctx, t, c, object) {
			if e.Type == eventType && e.Reason == reason && strings.Contains(e.Message, message) {
				return true, ""
			}
			seen = append(seen, e.Type+" "+e.Reason+": "+e.Message)
		}
		return false, strings.Join(seen, "\n")
	})
}

// eventsOf returns the agents' events on an object.
func eventsOf(ctx context.Context, t *testing.T, c *cluster, object client.Object) []corev1.Event {
	t.Helper()
	list := &corev1.EventList{}
	if err := c.Admin.List(ctx, list, client.MatchingFields{"involvedObject.uid": string(object.GetUID())}); err != nil {
		t.Fatal(err)
	}
	var events []corev1.Event
	for _, e := range list.Items {
		if e.Source.Component == "pav-controller" {
			events = append(events, e)
		}
	}
	return events
}

// copiedVersion returns the resource version of a PavVolume's copy of its claim.
func copiedVersion(t *testing.T, volume *pavv1.PavVolume) string {
	t.Helper()
	return copyOf(t, volume).ResourceVersion
}

// copyOf returns a PavVolume's copy of its claim.
func copyOf(t *testing.T, volume *pavv1.PavVolume) *corev1.PersistentVolumeClaim {
	t.Helper()
	copied := &corev1.PersistentVolumeClaim{}
	if err := json.Unmarshal(volume.Spec.Claim.Raw, copied); err != nil {
		t.Fatal(err)
	}
	return copied
}
