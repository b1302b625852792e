package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/test/agent"
)

// What a volume may cost the controller agent, from its claim to its end. The limits are well above what was measured, so
// only a change for the worse exceeds them. Times are logged, and never fail the test.
const (
	mostRequestsWithoutPods = 45
	mostRequestsWithPods    = 75
	mostMemory              = 192 << 20 // bytes
)

// loadWithin is how long a load may take to come, or to go, before the test gives up.
const loadWithin = 10 * time.Minute

// sizes returns how many claims are created at once without creation pods, and with them.
func sizes() (withoutPods, withPods int) {
	if long() {
		return 500, 100
	}
	return 100, 20
}

// The floor is what Kubernetes alone takes for as many volumes and claims that are bound to each other in advance.
func TestLoad_ClaimsWithoutPods(t *testing.T) {
	n, _ := sizes()
	namespace := start(t)
	withoutController(t)
	floor := loadByHand(t, namespace, n)
	t.Logf("the floor: %d claims and volumes made by hand are %s", n, floor)
	testLoad(t, namespace, n, floor, mostRequestsWithoutPods, "")
}

// The floor is as many bare pods, once for the creation pods and once for the deletion pods.
func TestLoad_ClaimsWithPods(t *testing.T) {
	_, n := sizes()
	namespace := start(t)
	withoutController(t)
	took := runByHand(t, namespace, n)
	t.Logf("the floor: %d bare pods have succeeded after %.1f s", n, took.Seconds())
	testLoad(t, namespace, n, times{bound: took, gone: took}, mostRequestsWithPods, truePod)
}

// testLoad creates claims of one provisioner at once, and deletes them at once, with the agent as it is deployed.
func testLoad(t *testing.T, namespace string, n int, floor times, mostRequests float64, pod string) {
	t.Helper()
	startController(t)
	newLoadProvisioner(t, "load", pod)
	for range 3 {
		if loadOnce(t, namespace, n, floor, mostRequests, pod) {
			return
		}
	}
	t.Error("the controller agent was started again each time")
}

// loadOnce is testLoad, and reports false where there are no figures: on a busy machine an agent may lose its lease, and
// counts from the beginning when it is started again.
func loadOnce(t *testing.T, namespace string, n int, floor times, mostRequests float64, pod string) bool {
	t.Helper()
	leader := startController(t)
	seen := watchPods(t)
	memory := peakMemory(t, leader)
	before := requestsOf(t, leader)
	took := load(t, namespace, n, "load")
	if now := startController(t); containerID(now) != containerID(leader) {
		t.Logf("%s was started again meanwhile; once more", now.Name)
		return false
	}
	made := requestsOf(t, leader).since(before)
	peak := peakMemory(t, leader)
	t.Logf("%d claims at once are %s: %.2f and %.2f times the floor", n, took, took.bound.Seconds()/floor.bound.Seconds(), took.gone.Seconds()/floor.gone.Seconds())
	t.Logf("the controller agent made %s, and had at most %d MiB, %d of them before", made.each(n), peak>>20, memory>>20)
	if each := made.total() / float64(n); each > mostRequests {
		t.Errorf("a volume takes %.1f requests, and may take %.0f", each, mostRequests)
	}
	if peak > mostMemory {
		t.Errorf("the controller agent had %d MiB, and may have %d", peak>>20, mostMemory>>20)
	}
	pods := 0
	if pod != "" {
		pods = 2 * n
	}
	seen.check(t, pods, controller.DefaultOptions().Pods)
	return true
}

// Two provisioners need more slots than there are. The agent runs in the test, which counts its requests by kind.
func TestLoad_LimitsBind(t *testing.T) {
	const each = 10
	namespace := start(t)
	provisioners := []string{"load-one", "load-two"}
	for _, name := range provisioners {
		newLoadProvisioner(t, name, truePod)
	}
	config := inPlaceOfController(t)
	counter := &requestCounter{made: requests{}}
	config.Wrap(counter.wrap)
	o := agent.Options("pav")
	o.Pods = queue.Limits{Overall: 9, PerProvisioner: 6}
	a := agent.Launch(t, config, o, &agent.Line{})
	t.Cleanup(func() { a.Stop(t) })
	seen := watchPods(t)
	before := counter.read()
	took := load(t, namespace, each, provisioners...)
	made := counter.read().since(before)
	t.Logf("%d claims are %s, with %s", each*len(provisioners), took, made.each(each*len(provisioners)))
	if each := made.total() / float64(each*len(provisioners)); each > mostRequestsWithPods {
		t.Errorf("a volume takes %.1f requests, and may take %d", each, mostRequestsWithPods)
	}
	seen.check(t, 2*each*len(provisioners), o.Pods)
	if seen.overall <= o.Pods.PerProvisioner {
		t.Errorf("at most %d pods ran at once: nothing tried the limits", seen.overall)
	}
}

// truePod is a template of a pod that does nothing.
const truePod = "{spec: {containers: [{name: main, image: 'busybox:1.37.0', command: ['true']}]}}"

// newLoadProvisioner makes a provisioner and its class, and waits until it can be used. Its creation
// and deletion pods follow the template; there are none where that is empty.
func newLoadProvisioner(t *testing.T, name, pod string) {
	t.Helper()
	yaml := provisioner(name, "mkdir /pav/volume", "")
	if pod != "" {
		yaml = strings.Replace(yaml, "\n  volumeStaging:", "\n    podTemplate: "+pod+"\n  volumeDeletion: {podTemplate: "+pod+"}\n  volumeStaging:", 1)
	}
	apply(t, "default", documents(yaml, storageClass(name)))
	eventually(t, "driver "+name+" is registered", func(ctx context.Context) error { return registered(ctx, name) })
}

// times has how long it took until all claims were bound, and until everything was gone after their deletion.
type times struct{ bound, gone time.Duration }

func (t times) String() string {
	return fmt.Sprintf("bound after %.1f s, and gone after %.1f s", t.bound.Seconds(), t.gone.Seconds())
}

// load creates n claims of each class at once, deletes them at once when all are bound, and waits until nothing is left of
// their volumes.
func load(t *testing.T, namespace string, n int, classes ...string) times {
	t.Helper()
	took := times{}
	took.bound = timed(func() {
		atOnce(t, n*len(classes), func(ctx context.Context, i int) error {
			return kube.Create(ctx, loadClaim(namespace, i, classes[i%len(classes)]))
		})
		await(t, &corev1.PersistentVolumeClaimList{}, n*len(classes), isBound, client.InNamespace(namespace))
	})
	took.gone = timed(func() {
		must(t, kube.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(namespace)))
		for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &pavv1.PavVolumeList{}} {
			await(t, list, 0, exists)
		}
		await(t, &corev1.PodList{}, 0, exists, client.HasLabels{pavv1.WorkflowLabel})
	})
	return took
}

// loadByHand is load with PersistentVolumes that the test makes, as PaV makes them.
func loadByHand(t *testing.T, namespace string, n int) times {
	t.Helper()
	took := times{}
	took.bound = timed(func() {
		atOnce(t, n, func(ctx context.Context, i int) error {
			claim := loadClaim(namespace, i, "")
			if err := kube.Create(ctx, claim); err != nil {
				return err
			}
			pv := &corev1.PersistentVolume{ObjectMeta: objectMeta("", volumeName(claim))}
			pv.Spec = corev1.PersistentVolumeSpec{
				Capacity:               claim.Spec.Resources.Requests,
				AccessModes:            claim.Spec.AccessModes,
				ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim.Name, UID: claim.UID},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			}
			return kube.Create(ctx, pv)
		})
		await(t, &corev1.PersistentVolumeClaimList{}, n, isBound, client.InNamespace(namespace))
	})
	took.gone = timed(func() {
		must(t, kube.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(namespace)))
		must(t, kube.DeleteAllOf(t.Context(), &corev1.PersistentVolume{}))
		await(t, &corev1.PersistentVolumeClaimList{}, 0, exists)
		await(t, &corev1.PersistentVolumeList{}, 0, exists)
	})
	return took
}

func loadClaim(namespace string, i int, class string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, fmt.Sprintf("load-%d", i))}
	claim.Spec.StorageClassName = &class
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	return claim
}

// runByHand runs n bare pods at once, which are like workflow pods without /pav, and returns how long that takes.
func runByHand(t *testing.T, namespace string, n int) time.Duration {
	t.Helper()
	took := timed(func() {
		atOnce(t, n, func(ctx context.Context, i int) error {
			pod := &corev1.Pod{ObjectMeta: objectMeta(namespace, fmt.Sprintf("bare-%d", i))}
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Spec.AutomountServiceAccountToken = new(false)
			pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "busybox:1.37.0", Command: []string{"true"}}}
			return kube.Create(ctx, pod)
		})
		await(t, &corev1.PodList{}, n, func(object client.Object) bool {
			pod, ok := object.(*corev1.Pod)
			return ok && pod.Status.Phase == corev1.PodSucceeded
		}, client.InNamespace(namespace))
	})
	must(t, kube.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace)))
	await(t, &corev1.PodList{}, 0, exists, client.InNamespace(namespace))
	return took
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// atOnce calls a function for each number below n, many at a time.
func atOnce(t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	errs, next := make([]error, n), make(chan int)
	var workers sync.WaitGroup
	for range 50 {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(t.Context(), i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	must(t, errors.Join(errs...))
}

func exists(client.Object) bool { return true }

func isBound(object client.Object) bool {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	return ok && claim.Status.Phase == corev1.ClaimBound
}

// await waits until so many objects of a kind fulfil the condition. It watches, so that waiting is no load.
func await(t *testing.T, list client.ObjectList, want int, condition func(client.Object) bool, options ...client.ListOption) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), loadWithin)
	defer cancel()
	found := map[types.UID]bool{}
	see := func(kind watch.EventType, object client.Object) {
		if kind != watch.Deleted && condition(object) {
			found[object.GetUID()] = true
		} else {
			delete(found, object.GetUID())
		}
	}
	events := follow(ctx, t, list, see, options...)
	defer events.Stop()
	for len(found) != want {
		event, ok := <-events.ResultChan()
		object, isObject := event.Object.(client.Object)
		if !ok || !isObject {
			t.Fatalf("%d of the objects in a %T are as they should be, want %d, but: %v, %v", len(found), list, want, event.Object, ctx.Err())
		}
		see(event.Type, object)
	}
}

// follow shows the objects of a kind that exist, and returns what happens to them from then on. The API
// server may end a watch whose reader is slow: the next one goes on where it ended.
func follow(ctx context.Context, t *testing.T, list client.ObjectList, see func(watch.EventType, client.Object), options ...client.ListOption) watch.Interface {
	t.Helper()
	watcher, err := client.NewWithWatch(restConfig(t), client.Options{Scheme: kube.Scheme()})
	must(t, err)
	must(t, watcher.List(ctx, list, options...))
	must(t, meta.EachListItem(list, func(object runtime.Object) error {
		see(watch.Added, object.(client.Object))
		return nil
	}))
	watches := &toolscache.ListWatch{WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		return watcher.Watch(ctx, list, append(options, &client.ListOptions{Raw: &raw})...)
	}}
	events, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watches)
	must(t, err)
	return events
}
