package integration

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// lastWrite cuts an agent's line when a PersistentVolume is written, before the agent hears of it.
type lastWrite struct {
	next http.RoundTripper
	line *agent.Line
}

// RoundTrip implements http.RoundTripper.
func (w *lastWrite) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil && request.Method == http.MethodPost && request.URL.Path == "/api/v1/persistentvolumes" && response.StatusCode == http.StatusCreated {
		w.line.Cut()
	}
	return response, err
}

// launchUntilWritten starts an agent that is cut off when it has written a PersistentVolume.
func launchUntilWritten(t *testing.T, c *cluster) *agent.Agent {
	t.Helper()
	line := &agent.Line{}
	config := rest.CopyConfig(c.agent)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lastWrite{next: next, line: line} })
	return agent.Launch(t, config, agent.Options(namespace), line)
}

// populatedClaim returns a claim whose volume a volume populator is to make.
func populatedClaim(class, name string) *corev1.PersistentVolumeClaim {
	claim := claimOf(class, name)
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("populator.example"), Kind: "Data", Name: "data"}
	return claim
}

// handOver gives a volume to another claim as volume populators do, and waits until both claims know.
func handOver(t *testing.T, c *cluster, from, to *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	t.Helper()
	awaitBound(t, c, from)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: from.Spec.VolumeName}}
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: to.Namespace, Name: to.Name, UID: to.UID, ResourceVersion: to.ResourceVersion}
	})
	awaitBound(t, c, to)
	exists(t, c, from, "has lost it", func(claim *corev1.PersistentVolumeClaim) bool { return claim.Status.Phase == corev1.ClaimLost })
	return pv
}

// The agent stops between writing the PersistentVolume and recording it, and a volume populator gives the
// volume to another claim meanwhile: it has that claim's data, and is deleted with that claim alone.
func TestVolumeRebound_BeforeItIsRecorded(t *testing.T) {
	const creationPod, none = true, false
	tests := map[string]struct{ creationPod, firstGone bool }{
		"the first claim is there":                        {creationPod: creationPod},
		"the first claim is deleted":                      {creationPod: creationPod, firstGone: true},
		"no creation pod":                                 {creationPod: none},
		"no creation pod, and the first claim is deleted": {creationPod: none, firstGone: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			current := launchUntilWritten(t, c)
			t.Cleanup(func() { current.Stop(t); checkNothingLeft(t, c) })
			const class = "populated"
			driver(t, c, class, withPods, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
				if !test.creationPod {
					p.Spec.VolumeCreation.PodTemplate = nil
				}
			})
			user := mustCreate(t, c, populatedClaim(class, "data"))
			first := mustCreate(t, c, claimOf(class, "prime-"+string(user.UID)))
			if test.creationPod {
				pod, _ := podOf(t, c, first, pavv1.WorkflowCreation)
				end(t, c, pod, workflow.Result{}, 0)
			}
			eventually(t, "the agent is cut off", func(context.Context) (bool, string) { return current.Line.IsCut(), "it is not" })
			current.Stop(t)
			pv := handOver(t, c, first, user)
			volume := volumeOf(first)
			exists(t, c, volume, "is not on record as ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumePending })
			if test.firstGone {
				mustDelete(t, c, first)
				gone(t, c, first)
			}

			current = agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
			exists(t, c, volume, "is ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
			if !test.firstGone {
				mustDelete(t, c, first)
				gone(t, c, first)
			}
			mustDelete(t, c, user)
			gone(t, c, user)
			pod, _ := podOf(t, c, first, pavv1.WorkflowDeletion)
			if n := podsMade(current); n != 1 {
				t.Errorf("%d pods were made for one deletion", n)
			}
			isKept(t, c, pv)
			end(t, c, pod, workflow.Result{}, 0)
			gone(t, c, pv)
			gone(t, c, volume)
		})
	}
}
