package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// podsOfAgent is the write that creates a workflow pod.
const podsOfAgent = "POST /api/v1/namespaces/pav-pods/pods"

// twoLeaders are a leader that stalls before it creates a pod, and the one that takes over.
type twoLeaders struct {
	c             *cluster
	first, second *agent.Agent
}

// lastingly are the options of agents whose leases outlast a busy machine: a leader that loses its lease before it stalls ends, and nobody
// goes on.
func lastingly() controller.Options {
	o := leading()
	o.LeaseDuration = 15 * time.Second
	return o
}

// leads returns an agent that leads in a cluster with buckets.
func leads(t *testing.T) *twoLeaders {
	t.Helper()
	c := start(t)
	installBucketKinds(t, c)
	enableBuckets(t, c)
	former, err := leader(t.Context(), c) // which may not have given the lease up
	if err != nil {
		t.Fatal(err)
	}
	l := &twoLeaders{c: c, first: agent.Launch(t, c.agent, lastingly(), &agent.Line{MayEnd: true})}
	t.Cleanup(func() {
		l.first.Line.Resume()
		if l.second != nil {
			l.second.Stop(t)
		}
		l.first.Stop(t)
		checkNothingLeft(t, c)
	})
	awaitLeader(t, c, former)
	return l
}

// stalls waits until the first leader stalls. What a test changes before that may keep it from the write at which it stalls.
func (l *twoLeaders) stalls(t *testing.T) {
	t.Helper()
	if !happens(t, "the leader stalls", l.first.Line.Stalled()) {
		t.FailNow()
	}
}

// takeOver lets another agent lead, after the first one has stalled.
func (l *twoLeaders) takeOver(t *testing.T) {
	t.Helper()
	l.stalls(t)
	stalled, err := leader(t.Context(), l.c)
	if err != nil {
		t.Fatal(err)
	}
	l.second = agent.Launch(t, l.c.agent, lastingly(), &agent.Line{MayEnd: true, Faults: agent.Faults{Late: map[string]time.Duration{"pods": 0}}})
	awaitLeader(t, l.c, stalled)
}

// runLate lets the first leader create its pod while the second one does not see that, and takes the pod to its end. Neither leader acts
// before that: each would stop a pod that is not recorded. The second one's cache has the pod after see is called.
func (l *twoLeaders) runLate(t *testing.T, kind string, result func(*corev1.Pod) workflow.Result) (see func()) {
	t.Helper()
	see = l.second.Line.Hold("pods")
	defer l.second.Line.HoldReads("pods")()
	l.first.Line.ResumeAndCut()
	var late *corev1.Pod
	eventually(t, "the late pod exists", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := l.c.Admin.List(ctx, pods, client.MatchingLabels{pavv1.WorkflowLabel: kind})
		for i := range pods.Items {
			late = &pods.Items[i]
		}
		return late != nil, fmt.Sprint(err)
	})
	end(t, l.c, late, result(late), 0)
	return see
}

// withoutGrants removes spec.bucketAccessGrant, so that grant pods that are not created are not needed any more.
func withoutGrants(p *pavv1.PavProvisioner) client.Patch {
	before := p.DeepCopy()
	p.Spec.BucketAccessGrant = nil
	return client.MergeFrom(before)
}

// A leader stalls before it creates a grant pod, which the next leader removes from the record. The account that the pod makes is revoked.
func TestGrantPod_OfAStalledLeader(t *testing.T) {
	l := leads(t)
	c := l.c
	p := driver(t, c, "late-grant", ofBuckets)
	grant := p.Spec.BucketAccessGrant
	b := claimBucket(t, c, "late-grant", "late-grant")
	name := "photos-" + string(b.object.UID)
	creation := recordedPod(t, c, b.bucket, pavv1.WorkflowBucketCreation, 1, name)
	l.first.Line.StallAt(podsOfAgent)
	end(t, c, creation, workflow.Result{Created: true}, 0)
	l.stalls(t)
	if err := c.Admin.Patch(t.Context(), p, withoutGrants(p)); err != nil {
		t.Fatal(err)
	}
	l.takeOver(t)
	exists(t, c, b.access, "has no pod any more", func(a *pavv1.PavBucketAccess) bool { return a.Status.Pods == 1 && a.Status.Pod == nil })
	see := l.runLate(t, pavv1.WorkflowGrant, func(pod *corev1.Pod) workflow.Result {
		result, err := sealed(pod, "late", canary)
		if err != nil {
			t.Fatal(err)
		}
		return result
	})
	see()
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, "late in "+grantsOf(name)), workflow.Result{}, 0)
	wantEvent(t, c, b.object, corev1.EventTypeWarning, "AccessGrantFailed", `its account, "late", is revoked`)
	before := p.DeepCopy()
	p.Spec.BucketAccessGrant = grant
	if err := c.Admin.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	next := b.account() + "-1"
	pod := recordedPod(t, c, b.access, pavv1.WorkflowGrant, 3, next+" in "+grantsOf(name, next))
	result, err := sealed(pod, next, canary)
	if err != nil {
		t.Fatal(err)
	}
	end(t, c, pod, result, 0)
	exists(t, c, b.object, "is bound", func(o *obcv1.ObjectBucketClaim) bool { return o.Status.Phase == obcv1.ClaimBound })
	mustDelete(t, c, b.object)
	end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 4, next+" in "+grantsOf(name)), workflow.Result{}, 0)
	end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
	b.wantGone(t)
	noPodIsLeft(t, c)
}

// The same, and the claim goes: its record stays as long as the pod exists, although the cache does not show the pod. A pod that comes after
// that is reported to the administrator.
func TestGrantPod_OfAStalledLeader_WhileTheClaimGoes(t *testing.T) {
	for name, comes := range map[string]struct{ late bool }{"before the record goes": {}, "after the record has gone": {late: true}} {
		t.Run(name, func(t *testing.T) {
			l := leads(t)
			c := l.c
			p := driver(t, c, "late-claim", ofBuckets)
			b := claimBucket(t, c, "late-claim", "late-claim")
			name := "photos-" + string(b.object.UID)
			creation := recordedPod(t, c, b.bucket, pavv1.WorkflowBucketCreation, 1, name)
			l.first.Line.StallAt(podsOfAgent)
			end(t, c, creation, workflow.Result{Created: true}, 0)
			l.stalls(t)
			if err := c.Admin.Patch(t.Context(), p, withoutGrants(p)); err != nil {
				t.Fatal(err)
			}
			l.takeOver(t)
			exists(t, c, b.access, "has no pod any more", func(a *pavv1.PavBucketAccess) bool { return a.Status.Pods == 1 && a.Status.Pod == nil })
			told := func(*corev1.Pod) workflow.Result { return workflow.Result{AccountID: "late"} }
			if comes.late {
				mustDelete(t, c, b.object)
				end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
				b.wantGone(t)
				l.runLate(t, pavv1.WorkflowGrant, told)()
				wantEvent(t, c, p, corev1.EventTypeWarning, "AccountLeft", `account "late" may exist`)
				noPodIsLeft(t, c)
				return
			}
			see := l.runLate(t, pavv1.WorkflowGrant, told)
			lists := l.second.Line.Lists("pods")
			mustDelete(t, c, b.object)
			eventually(t, "the leader asks for the pods of the access, which it has not seen", func(context.Context) (bool, string) {
				return l.second.Line.Lists("pods") > lists, ""
			})
			see()
			end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 2, "late in "+grantsOf(name)), workflow.Result{}, 0)
			end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, name+" True"), workflow.Result{}, 0)
			b.wantGone(t)
			noPodIsLeft(t, c)
		})
	}
}

// A leader stalls before it creates a creation pod, which the next leader removes from the record. The bucket that the pod makes is reverted
// if its name says that it is the claim's; else the record says that it may exist.
func TestBucketCreationPod_OfAStalledLeader(t *testing.T) {
	for name, test := range map[string]struct {
		changes []func(*obcv1.ObjectBucketClaim)
	}{"of a name that PaV made": {}, "of a name that the claim chose": {changes: []func(*obcv1.ObjectBucketClaim){requested("late-chosen")}}} {
		t.Run(name, func(t *testing.T) {
			l := leads(t)
			c := l.c
			p := driver(t, c, "late-bucket", ofBuckets)
			l.first.Line.StallAt(podsOfAgent)
			b := claimBucket(t, c, "late-bucket", "late-bucket", test.changes...)
			l.stalls(t)
			before := p.DeepCopy()
			p.Spec.BucketCreation = nil
			if err := c.Admin.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			l.takeOver(t)
			exists(t, c, b.bucket, "has no pod any more", func(b *pavv1.PavBucket) bool { return b.Status.Pods == 1 && b.Status.Pod == nil })
			l.runLate(t, pavv1.WorkflowBucketCreation, func(*corev1.Pod) workflow.Result { return workflow.Result{} })()
			if len(test.changes) == 0 {
				end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, "photos-"+string(b.object.UID)+" True"), workflow.Result{}, 0)
				exists(t, c, b.bucket, "is reverted", func(b *pavv1.PavBucket) bool { return b.Status.Step == "" && b.Status.BucketID == "" })
				mustDelete(t, c, b.object)
				b.wantGone(t)
				return
			}
			exists(t, c, b.bucket, "may exist", func(b *pavv1.PavBucket) bool { return b.Status.MayExist })
			mustDelete(t, c, b.object)
			gone(t, c, b.object)
			exists(t, c, b.bucket, "is retained", func(b *pavv1.PavBucket) bool { return b.Status.Phase == pavv1.BucketRetained && len(b.Finalizers) == 0 })
			mustDelete(t, c, b.bucket)
			b.wantGone(t)
		})
	}
}

// A leader stalls before it writes the credentials of an account, or before it gives the Secret its finalizer. The next leader delivers
// them, and then those of a later account, which the first one does not write over.
func TestSecret_OfAStalledLeader(t *testing.T) {
	const name = "late-secret"
	for kind, write := range map[string]string{
		"that is created": "POST /api/v1/namespaces/default/secrets", "that exists": "PUT /api/v1/namespaces/default/secrets/" + name,
	} {
		t.Run(kind, func(t *testing.T) {
			l := leads(t)
			c := l.c
			driver(t, c, name, ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
				p.Spec.BucketAccessGrant.Overlap = &metav1.Duration{}
			})
			b := claimBucket(t, c, name, name)
			bucket, next := "photos-"+string(b.object.UID), b.account()+"-1"
			end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketCreation, 1, bucket), workflow.Result{Created: true}, 0)
			grant := func(number int32, account string, others ...string) {
				t.Helper()
				pod := recordedPod(t, c, b.access, pavv1.WorkflowGrant, number, account+" in "+grantsOf(bucket, append(others, account)...))
				result, err := sealed(pod, account, canary)
				if err != nil {
					t.Fatal(err)
				}
				if number == 1 {
					l.first.Line.StallAt(write)
				}
				end(t, c, pod, result, 0)
			}
			grant(1, b.account())
			l.takeOver(t)
			exists(t, c, b.object, "is bound", func(o *obcv1.ObjectBucketClaim) bool { return o.Status.Phase == obcv1.ClaimBound })
			rotate(t, c, b.access, b.object)
			grant(2, next, b.account())
			end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 3, b.account()+" in "+grantsOf(bucket, next)), workflow.Result{}, 0)
			hasNext := func(s *corev1.Secret) bool { return string(s.Data[obcv1.AWSAccessKeyID]) == next }
			exists(t, c, b.secret(), "has the credentials of the later account", hasNext)
			l.first.Line.Resume()
			eventually(t, "the write of the first leader is refused", func(context.Context) (bool, string) {
				return slices.Contains(l.first.Line.Lost(), write), fmt.Sprint(l.first.Line.Lost())
			})
			l.first.Stop(t)
			exists(t, c, b.secret(), "has them still", hasNext)
			mustDelete(t, c, b.object)
			end(t, c, recordedPod(t, c, b.access, pavv1.WorkflowRevocation, 4, next+" in "+grantsOf(bucket)), workflow.Result{}, 0)
			end(t, c, recordedPod(t, c, b.bucket, pavv1.WorkflowBucketDeletion, 2, bucket+" True"), workflow.Result{}, 0)
			b.wantGone(t)
			noPodIsLeft(t, c)
		})
	}
}
