package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// policyStore is a store with one bucket, on which grant and revocation pods work. Each writes the policy that it was made with.
type policyStore struct {
	c    *cluster
	done chan struct{}
	stop func()

	mu       sync.Mutex
	granted  map[string]bool // the accounts that grant pods have made
	revoked  map[string]bool // those that revocation pods have deleted
	policy   []string        // the accounts in the policy that was written last
	problems []string
}

// servePolicies takes all pods to their ends, one after the other, the first one when many accesses wait for the bucket.
func servePolicies(t *testing.T, c *cluster, many int) *policyStore {
	t.Helper()
	ctx, node := lasting(t), nodeAgent(t, c, fakeNode)
	pods, err := c.Admin.Watch(ctx, &corev1.PodList{}, client.HasLabels{pavv1.WorkflowLabel})
	if err != nil {
		t.Fatal(err)
	}
	s := &policyStore{c: c, done: make(chan struct{}), stop: pods.Stop, granted: map[string]bool{}, revoked: map[string]bool{}}
	go func() {
		defer close(s.done)
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Added {
				continue
			}
			if err := wait.PollUntilContextTimeout(ctx, interval, deadline, true, func(ctx context.Context) (bool, error) {
				return crowded(ctx, c, many), nil
			}); err != nil {
				s.reportf("%d accesses never wait at once: %v", many, err)
			}
			many = 0
			s.check(ctx, pod)
			result, err := resultByHand(pod.Labels[pavv1.WorkflowLabel], pod)
			if err == nil {
				err = endPod(ctx, c.Admin, node, pod, result, 0)
			}
			if err != nil {
				s.reportf("%v", err)
			}
		}
	}()
	t.Cleanup(s.rest)
	return s
}

// crowded reports whether that many accesses have pods, of which one at a time works on the bucket.
func crowded(ctx context.Context, c *cluster, many int) bool {
	accesses := &pavv1.PavBucketAccessList{}
	err := c.Admin.List(ctx, accesses)
	waiting := 0
	for i := range accesses.Items {
		if accesses.Items[i].Status.Pods > 0 {
			waiting++
		}
	}
	return err == nil && waiting >= many
}

func (s *policyStore) rest() {
	s.stop()
	<-s.done
}

func (s *policyStore) reportf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// check does what a pod does to the store: it is the only one that works on the bucket, and its policy has all accounts that were granted and
// are to work, and none that was revoked.
func (s *policyStore) check(ctx context.Context, pod *corev1.Pod) {
	all := &corev1.PodList{}
	if err := s.c.Admin.List(ctx, all, client.HasLabels{pavv1.WorkflowLabel}); err != nil {
		s.reportf("%v", err)
	}
	for i := range all.Items {
		if other := &all.Items[i]; other.UID != pod.UID && other.Status.Phase != corev1.PodSucceeded {
			s.reportf("pod %s works on the bucket beside %s", other.Name, pod.Name)
		}
	}
	account, list, _ := strings.Cut(pod.Annotations["sees"], " in ")
	_, list, _ = strings.Cut(list, ":")
	policy := strings.Fields(strings.ReplaceAll(list, " ReadWrite", ""))
	s.mu.Lock()
	defer s.mu.Unlock()
	isGrant := pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowGrant
	if isGrant {
		s.granted[account] = true
	} else {
		s.revoked[account] = true
	}
	if slices.Contains(policy, account) != isGrant {
		s.problems = append(s.problems, fmt.Sprintf("the policy of %s has its account %s: %t", pod.Name, account, !isGrant))
	}
	for _, other := range policy {
		if s.revoked[other] || !s.granted[other] {
			s.problems = append(s.problems, fmt.Sprintf("the policy of %s has the account %s, which does not exist", pod.Name, other))
		}
	}
	s.policy = policy
}

// Many claims of an existing bucket come at once, and half of them go again as soon as they are bound: at no time do two pods work on the
// bucket, no policy lacks an account that stays or has one that is gone, and the last policy is that of the ledger.
func TestObjectBucketClaims_ManyAtOnceOfOneBucket(t *testing.T) {
	many := 6
	if long() {
		many = 50
	}
	c, _ := withBuckets(t)
	driver(t, c, "bucketed-many", ofBuckets, func(_ *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		class.Parameters = map[string]string{obcv1.BucketNameParameter: "archive"}
	})
	store := servePolicies(t, c, many)
	claims := make([]*bucketClaim, many)
	for i := range claims {
		claims[i] = claimBucket(t, c, "bucketed-many", fmt.Sprintf("many-%d", i))
	}
	var stay []string
	for i, claim := range claims {
		exists(t, c, claim.object, "is bound", func(o *obcv1.ObjectBucketClaim) bool { return o.Status.Phase == obcv1.ClaimBound })
		if i%2 == 0 {
			mustDelete(t, c, claim.object)
		} else {
			stay = append(stay, claim.account())
		}
	}
	for i, claim := range claims {
		if i%2 == 0 {
			gone(t, c, claim.object)
			gone(t, c, claim.access)
		}
	}
	slices.Sort(stay)
	store.mu.Lock()
	if !slices.Equal(store.policy, stay) {
		t.Errorf("the last policy has %q, and the ledger %q", store.policy, stay)
	}
	store.mu.Unlock()
	for i, claim := range claims {
		if i%2 == 1 {
			mustDelete(t, c, claim.object)
		}
	}
	for _, claim := range claims {
		claim.wantGone(t)
	}
	store.rest()
	for _, problem := range store.problems {
		t.Error(problem)
	}
	if len(store.policy) > 0 || len(store.granted) != many || len(store.revoked) != many {
		t.Errorf("the last policy has %q; %d accounts were granted, and %d revoked", store.policy, len(store.granted), len(store.revoked))
	}
}
