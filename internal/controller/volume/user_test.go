package volume

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// withinQuota returns a client of an API server that refuses claims with more allocated than a limit; "" is none at all.
func withinQuota(c client.Client, limit string) client.Client {
	watching, ok := c.(client.WithWatch)
	if !ok {
		panic("the client cannot watch")
	}
	return interceptor.NewClient(watching, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if claim, is := object.(*corev1.PersistentVolumeClaim); is {
				if allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]; limit == "" || allocated.Cmp(resource.MustParse(limit)) > 0 {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, claim.Name, errors.New("exceeded quota"))
				}
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
}

// The API server of Kubernetes 1.32 refuses to let a claim show that more is allocated than a ResourceQuota has room for.
func TestShowClaim_WithinAQuota(t *testing.T) {
	const pending = corev1.PersistentVolumeClaimNodeResizePending
	grown := func() *state { return growing().with(capacityIs("3Gi")).with(nodeTemplate).with(hasEnded) }
	for name, test := range map[string]struct {
		state *state
		limit string
		want  size
	}{
		"there is room": {state: grown(), limit: "3Gi", want: size{capacity: "1Gi", allocated: "3Gi", resize: pending, onNode: true}},
		"there is none": {state: grown(), limit: "2Gi", want: size{capacity: "1Gi", allocated: "2Gi", resize: pending, onNode: true}},
		"a node has made available what it could": {state: grown().with(shown).with(kubeletSays("")).with(allocatedIs("2Gi")).with(claimShows("2Gi")), limit: "2Gi", want: size{capacity: "3Gi", allocated: "2Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			r := expander(t, &o)
			r.Client = withinQuota(r.Client, test.limit)
			if err := r.showClaim(t.Context(), o, decision{}); err != nil {
				t.Fatal(err)
			}
			claim := &corev1.PersistentVolumeClaim{}
			if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(o.user), claim); err != nil {
				t.Fatal(err)
			}
			if got := sizeShown(claim); got != test.want {
				t.Errorf("it shows %+v, want %+v", got, test.want)
			}
			o.user = claim
			if o.claimBehind() {
				t.Errorf("the next pass writes %+v", sizeOf(o))
			}
		})
	}
}

func allocatedIs(text string) func(*observation) {
	return func(o *observation) {
		o.user.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
	}
}

// If the status of a claim cannot be written, an event says why, and it is not written again at once.
func TestShowClaim_ThatIsRefused(t *testing.T) {
	o := growing().with(capacityIs("3Gi")).with(nodeTemplate).with(hasEnded).o
	r := expander(t, &o)
	r.Client = withinQuota(r.Client, "")
	err := r.showClaim(t.Context(), o, decision{})
	if later, is := errors.AsType[*reconcile.Later](err); !is || later.After <= 0 {
		t.Errorf("the pass ends with %v", err)
	}
	const want = "exceeded quota"
	if c := meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeExpanded); c == nil || c.Reason != reasonUnshown || !strings.Contains(c.Message, want) {
		t.Errorf("the condition is %+v", c)
	}
	events, ok := r.Events.(*record.FakeRecorder)
	if !ok {
		t.Fatal("events are not recorded")
	}
	select {
	case event := <-events.Events:
		if !strings.HasPrefix(event, "Warning VolumeResizeFailed") || !strings.Contains(event, want) {
			t.Errorf("the claim was told %q", event)
		}
	default:
		t.Error("the claim was told nothing")
	}
	if got := decide(o).Step; got != stepShowClaim {
		t.Errorf("the next pass takes the step %s", got)
	}
}
