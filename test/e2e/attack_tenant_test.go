package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/flood"
)

// tenantOf returns a client with the token of a tenant who has Kubernetes' role edit in a namespace.
func tenantOf(t *testing.T, namespace string) client.Client {
	t.Helper()
	for _, args := range [][]string{
		{"create", "serviceaccount", "tenant"},
		{"create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount=" + namespace + ":tenant"},
	} {
		_, err := kubectl(t.Context(), "", append(args, "-n", namespace)...)
		must(t, err)
	}
	request := &authenticationv1.TokenRequest{}
	must(t, kube.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: objectMeta(namespace, "tenant")}, request))
	config := rest.AnonymousClientConfig(restConfig(t))
	config.BearerToken = request.Status.Token
	tenant := newClient(t, config)
	eventually(t, "the tenant has the role", func(ctx context.Context) error {
		return client.NewDryRunClient(tenant).Create(ctx, ordinaryPod(namespace, "ordinary"))
	})
	return tenant
}

// ordinaryPod returns a pod for node1.
func ordinaryPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: objectMeta(namespace, name), Spec: corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelHostname: "node1"},
		TerminationGracePeriodSeconds: new(int64),
		Containers:                    []corev1.Container{{Name: "main", Image: "busybox:1.37.0", Command: []string{"sleep", "infinity"}}},
	}}
}

// unharmed has the agents before an attack.
type unharmed struct{ agents []corev1.Pod }

func beforeAttack(t *testing.T) unharmed {
	t.Helper()
	all, err := agents(t.Context())
	must(t, err)
	return unharmed{all}
}

// check fails the test unless every agent still runs in its container, and never exceeded its memory limit.
func (u unharmed) check(t *testing.T) {
	t.Helper()
	for i := range u.agents {
		agent := &corev1.Pod{}
		must(t, kube.Get(t.Context(), keyOf(&u.agents[i]), agent))
		if containerID(agent) != containerID(&u.agents[i]) {
			t.Errorf("agent %s was started again: %+v", agent.Name, agent.Status.ContainerStatuses)
			continue
		}
		peak, limit := peakMemory(t, agent), agent.Spec.Containers[0].Resources.Limits.Memory().Value()
		t.Logf("%s on %s has had at most %d MiB, and may have %d", component(agent), agent.Spec.NodeName, peak>>20, limit>>20)
		if limit == 0 || int64(peak) >= limit {
			t.Errorf("agent %s has had %d bytes of memory, and may have %d", agent.Name, peak, limit)
		}
	}
}

// In most clusters every pod can call the webhook. Large bodies neither kill an agent nor delay the check of definitions,
// for which the API server waits ten seconds.
func TestAttack_FloodOfTheWebhook(t *testing.T) {
	t.Parallel()
	before := beforeAttack(t)
	for _, wave := range []struct {
		name    string
		size    int
		chunked bool
	}{{"of 6.6 MB", 6_600_000, false}, {"of 6.6 MB that do not say so", 6_600_000, true}, {"of as much as is taken", 3_600_000, false}} {
		ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
		taken, done := before.flood(ctx, flood.Review(wave.size), wave.chunked)
		judged := 0
		for flooded := true; flooded; judged++ {
			if err := definitionsAreJudged(ctx); err != nil {
				t.Errorf("bodies %s: a definition is not judged meanwhile: %v", wave.name, err)
			}
			select {
			case <-done:
				flooded = false
			default:
			}
		}
		cancel()
		t.Logf("bodies %s: %d taken, %d definitions judged meanwhile", wave.name, taken.Load(), judged)
		if wave.size > 4<<20 && taken.Load() > 0 {
			t.Errorf("bodies %s: %d were taken", wave.name, taken.Load())
		}
	}
	before.check(t)
}

// flood sends 24 bodies to each controller agent at once. It returns how many were accepted, and a channel that is closed
// when all are answered.
func (u unharmed) flood(ctx context.Context, body []byte, chunked bool) (*atomic.Int32, <-chan struct{}) {
	taken, done, sent := &atomic.Int32{}, make(chan struct{}), sync.WaitGroup{}
	for i := range u.agents {
		if component(&u.agents[i]) != controllerAgent {
			continue
		}
		for range 24 {
			sent.Go(func() {
				code, err := flood.Send(ctx, net.JoinHostPort(u.agents[i].Status.PodIP, "9443"), body, chunked)
				if err == nil && code == http.StatusOK {
					taken.Add(1)
				}
			})
		}
	}
	go func() { sent.Wait(); close(done) }()
	return taken, done
}

// coloured edits a ledger's definition: the validation pod accepts only claims of one colour, and pods note the colour that
// they see.
func coloured(text string) string {
	const see = `colour={{ pvc.metadata.annotations.colour | tobash }}; echo "%s $colour" >> /storage/seen; hook %[1]s`
	validate := fmt.Sprintf(see, "validate") + "\n" + strings.Repeat(" ", 16) +
		`if test "$colour" != green; then echo "the colour is not allowed" > /pav/error; exit 1; fi`
	text = strings.Replace(text, "hook validate", validate, 1)
	return strings.Replace(text, "hook create", fmt.Sprintf(see, "create"), 1)
}

// A tenant changes an annotation of the claim while the validation pod runs, which has seen the earlier value.
func TestAttack_ClaimChangedWhileItIsValidated(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "coloured", coloured)
	tenant := tenantOf(t, l.namespace)
	paint := func(claim *corev1.PersistentVolumeClaim, colour string) {
		t.Helper()
		must(t, patching(claim, fmt.Sprintf(`{"metadata": {"annotations": {"colour": %q}}}`, colour))(t.Context(), tenant))
	}
	l.hold(t, "validate")
	_, err := kubectl(t.Context(), strings.Replace(claim("data", l.name, "ReadWriteMany"), "  name: data\n", "  name: data\n  annotations: {colour: green}\n", 1),
		"create", "-n", l.namespace, "-f", "-")
	must(t, err)
	claim := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "data"}, claim))
	l.runningPod(t, pavv1.WorkflowValidation, claim)
	paint(claim, "red")
	l.unhook(t, "validate")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "the colour is not allowed")
	must(t, l.wantEffects(claim))

	paint(claim, "green")
	awaitBound(t, claim)
	removeClaim(t, claim)
	seen, err := readFile(l.directory, "seen")
	must(t, err)
	if !strings.HasPrefix(seen, "validate green\nvalidate red\n") || !strings.HasSuffix(seen, "validate green\ncreate green\n") || strings.Contains(seen, "create red") {
		t.Errorf("what the pods saw is %q", seen)
	}
}
