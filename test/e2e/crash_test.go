package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
)

// inPlaceOfController removes the deployed controller agents for the rest of the test, so that the test can run its own,
// with the rights that it returns. The webhook is removed, too: the API server cannot reach an agent that runs in a test,
// and would refuse creation pods with host paths.
func inPlaceOfController(t *testing.T) *rest.Config {
	t.Helper()
	withoutController(t)
	withoutWebhook(t, "controller-pods."+pavv1.Group)
	return controllerConfig(t)
}

// withoutWebhook removes an entry of PaV's webhooks for the rest of the test.
func withoutWebhook(t *testing.T, name string) {
	t.Helper()
	var taken []admissionregistrationv1.ValidatingWebhook
	change := func(ctx context.Context, how func([]admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook) error {
		hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := kube.Get(ctx, client.ObjectKey{Name: "pav-provisioners"}, hooks); err != nil {
			return err
		}
		hooks.Webhooks = how(hooks.Webhooks)
		return kube.Update(ctx, hooks)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if err := poll(ctx, func(ctx context.Context) error {
			return change(ctx, func(others []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
				for i := range taken {
					taken[i].ClientConfig.CABundle = others[0].ClientConfig.CABundle // It may have been renewed.
				}
				return append(others, taken...)
			})
		}); err != nil {
			t.Errorf("the webhook is not back: %v", err)
		}
	})
	eventually(t, "the webhook is taken away", func(ctx context.Context) error {
		return change(ctx, func(all []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
			taken = slices.DeleteFunc(slices.Clone(all), func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name != name })
			return slices.DeleteFunc(all, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == name })
		})
	})
	if len(taken) != 1 {
		t.Fatalf("there are %d webhooks %q, want one", len(taken), name)
	}
}

// withoutController removes the deployed controller agents for the rest of the test.
func withoutController(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		scaleController(t, 2)
		waitAgents(t, "")
	})
	scaleController(t, 0)
	eventually(t, "no controller agent runs", func(ctx context.Context) error {
		all, err := agents(ctx)
		for i := range all {
			if component(&all[i]) == controllerAgent {
				err = errors.Join(err, fmt.Errorf("%s exists", all[i].Name))
			}
		}
		return err
	})
}

func scaleController(t *testing.T, replicas int) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	deployment := &appsv1.Deployment{ObjectMeta: objectMeta("pav", controllerAgent)}
	if err := kube.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Error(err)
	}
}

// controllerConfig returns how to reach the API server with the rights of the controller agent.
func controllerConfig(t *testing.T) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	must(t, kube.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: objectMeta("pav", controllerAgent)}, request))
	config := rest.AnonymousClientConfig(restConfig(t))
	config.BearerToken = request.Status.Token
	config.WarningHandler = rest.NoWarnings{} // Workflow pods have no claim to any security profile.
	return config
}

// live takes a volume through its life, and returns what happened, without names, versions and times.
func (l *ledger) live(t *testing.T) map[string]any {
	t.Helper()
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	volume := awaitVolume(t, claim, "ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
	seen := gotPV(pv)
	delete(seen, "claim")
	delete(seen, "csi")
	for _, c := range volume.Status.Conditions {
		seen[c.Type] = strings.ReplaceAll(string(c.Status)+" "+c.Reason+" "+c.Message, pv.Name, "its name")
	}
	s := volume.Status
	seen["handle"] = strings.ReplaceAll(s.Handle+" and "+pv.Spec.CSI.VolumeHandle, pv.Name, "its name")
	seen["status"] = fmt.Sprint(volume.Finalizers, volume.Spec.ReclaimPolicy, s.Step, s.Attempt, s.DeletionAttempt, s.Capacity, s.Failure == nil, s.Pod == nil)
	removeClaim(t, claim)
	eventually(t, "its pods are gone", func(ctx context.Context) error { return wantNoWorkflowPods(ctx, l.name) })
	effects, err := l.effects(false)
	must(t, err)
	seen["effects"] = effects[volumeName(claim)]
	return seen
}

// The agent is stopped after each of its writes in turn, without hearing that it succeeded.
func TestControllerStoppedAfterEachWrite(t *testing.T) {
	start(t)
	lives := map[string]string{"nothing fails": ""}
	// The integration tests cover every write, but without real pods; in the short suite, this test covers every eighth.
	every := 8
	if long() {
		every = 1
		// The first creation pod of a volume fails, so that it is reverted.
		lives["creation fails"] = `if ! test -e /storage/$volume; then touch /storage/$volume; exit 3; fi`
	}
	for name, hook := range lives {
		t.Run(name, func(t *testing.T) { stopAfterEachWrite(t, hook, every) })
	}
}

func stopAfterEachWrite(t *testing.T, hook string, every int) {
	t.Helper()
	l := newLedger(t, "crash")
	l.hook(t, "create", hook)
	eventually(t, "the driver is registered", func(ctx context.Context) error { return registered(ctx, l.name) })
	config := inPlaceOfController(t)
	var want map[string]any
	var writes []string
	t.Run("undisturbed", func(t *testing.T) {
		s := agent.Supervise(t, config, agent.Options("pav"), 0)
		t.Cleanup(func() {
			writes = s.Stop(t).Line.Writes()
			agent.CheckNoGoroutines(t)
		})
		want = l.live(t)
	})
	t.Logf("in the undisturbed life, which was %v, the agent wrote %d times:\n%s", want, len(writes), strings.Join(writes, "\n"))
	if len(writes) < 15 {
		t.Fatal("these are too few")
	}
	var cuts agent.Cuts
	for k := 1; k <= len(writes); k += every {
		t.Run(fmt.Sprintf("after write %d", k), func(t *testing.T) {
			s := agent.Supervise(t, config, agent.Options("pav"), k)
			t.Cleanup(func() {
				s.Stop(t)
				cuts.Add(t, s, k)
				agent.CheckNoGoroutines(t)
			})
			t.Cleanup(func() {
				if t.Failed() {
					explain(t, l.namespace)
					l.removeClaims(t)
				}
			})
			if diff := cmp.Diff(want, l.live(t)); diff != "" {
				t.Errorf("another life than the undisturbed one (-want +got):\n%s", diff)
			}
		})
	}
	cuts.Check(t)
}

// A creation pod runs longer than several agents.
func TestControllerRestartedDuringCreation_OneCreationPod(t *testing.T) {
	start(t)
	l := newLedger(t, "outlasting")
	config := inPlaceOfController(t)
	l.hold(t, "create")
	a := agent.Launch(t, config, agent.Options("pav"), &agent.Line{})
	t.Cleanup(func() { a.Stop(t); agent.CheckNoGoroutines(t) })
	claim := l.claim(t, "data")
	pod := l.runningPod(t, pavv1.WorkflowCreation, claim)
	for i := range 5 {
		if i%2 == 0 {
			a.Line.Cut()
		}
		a.Stop(t)
		if i == 4 {
			l.unhook(t, "create") // The pod ends while nobody sees it.
			eventually(t, "the pod has ended", func(ctx context.Context) error {
				return wantPhase(ctx, pod, corev1.PodSucceeded)
			})
		}
		a = agent.Launch(t, config, agent.Options("pav"), &agent.Line{})
		if i < 4 {
			// After this request, it has seen all objects.
			probe := l.claim(t, fmt.Sprintf("probe-%d", i))
			l.runningPod(t, pavv1.WorkflowCreation, probe)
			must(t, wantPhase(t.Context(), pod, corev1.PodRunning))
		}
	}
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create"))
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// wantPhase objects unless the pod exists, is the one that it was, and has the phase.
func wantPhase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	now := &corev1.Pod{}
	if err := kube.Get(ctx, keyOf(pod), now); err != nil {
		return err
	}
	if now.UID != pod.UID || now.Status.Phase != phase || now.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s is %s, deleted %v", now.Name, now.Status.Phase, now.DeletionTimestamp)
	}
	return nil
}

// Leadership moves from one agent to the other, and back, while a pod creates a volume.
func TestLeaderMovesDuringCreation_OneCreationPod(t *testing.T) {
	moves := often(4, 50)
	start(t)
	l := newLedger(t, "moving")
	config := inPlaceOfController(t)
	o := agent.Options("pav")
	o.LeaderElect, o.LeaseDuration = true, 6*time.Second
	leader, other := agent.Launch(t, config, o, &agent.Line{}), agent.Launch(t, config, o, &agent.Line{})
	t.Cleanup(func() {
		leader.Stop(t)
		other.Stop(t)
		agent.CheckNoGoroutines(t)
	})
	l.hold(t, "create")
	claim := l.claim(t, "data")
	pod := l.runningPod(t, pavv1.WorkflowCreation, claim)
	for i := range moves {
		if len(other.Line.Writes()) > 0 {
			leader, other = other, leader
		}
		if i%2 == 0 {
			leader.Line.Cut() // Else it gives up its lease.
		}
		leader.Stop(t)
		leader = agent.Launch(t, config, o, &agent.Line{})
		leader, other = other, leader
		probe := l.claim(t, fmt.Sprintf("probe-%d", i))
		eventually(t, "the other agent leads", func(ctx context.Context) error {
			_, err := volumeOf(ctx, probe)
			return err
		})
		must(t, kube.Delete(t.Context(), probe))
		must(t, wantPhase(t.Context(), pod, corev1.PodRunning))
	}
	l.unhook(t, "create")
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create"))
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// A fifth of the requests fail, and half of these after they took effect.
func TestUnreliableAPIServer_AllVolumesComeAndGo(t *testing.T) {
	start(t)
	l := newLedger(t, "unreliable")
	config := inPlaceOfController(t)
	a := agent.Launch(t, config, agent.Options("pav"), &agent.Line{Faults: agent.Faults{Failing: 5}})
	t.Cleanup(func() { a.Stop(t); agent.CheckNoGoroutines(t) })
	claims := make([]*corev1.PersistentVolumeClaim, often(4, 10))
	began := time.Now()
	for i := range claims {
		claims[i] = l.claim(t, fmt.Sprintf("data-%d", i))
	}
	for _, claim := range claims {
		awaitBound(t, claim)
	}
	boundAfter := time.Since(began)
	for _, claim := range claims {
		must(t, kube.Delete(t.Context(), claim))
	}
	for _, claim := range claims {
		awaitNoVolume(t, claim)
		must(t, l.wantEffects(claim, "create", "delete"))
	}
	t.Logf("%d claims were bound after %.0f s, and their volumes gone after %.0f s more, with %d requests", len(claims), boundAfter.Seconds(), (time.Since(began) - boundAfter).Seconds(), a.Line.Requests())
	if failed := a.Line.Strikes().Failed; failed == 0 {
		t.Error("no request failed")
	} else {
		t.Logf("%d requests failed", failed)
	}
}
