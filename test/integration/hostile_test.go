package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/kubelet"
)

// hostile has templates that exceed limits, or request what they may not have.
var hostile = map[string]string{
	"loops":     "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
	"memory":    "{{ 'a' * 99999999999 }}",
	"recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
	"nesting":   "{{ " + strings.Repeat("(", 30000) + "1" + strings.Repeat(")", 30000) + " }}",
	"file":      "{% include '/var/run/secrets/kubernetes.io/serviceaccount/token' %}",
	"classes":   "{{ ''.__class__.__mro__[1].__subclasses__() }}",
	"division":  "{{ 1 % 0 }}",
}

// Hostile definitions fail only for their own claims, while the agent serves others.
func TestHostileDefinitions_AffectNoOtherProvisioner(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "peaceful")
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for name, template := range hostile {
		driver(t, c, "hostile-"+name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
			p.Spec.VolumeCreation.Capacity = field(strconv.Quote(template))
		})
		claims[name] = mustCreate(t, c, claimOf("hostile-"+name, "hostile-"+name))
	}
	for i := range 5 {
		bound(t, c, mustCreate(t, c, claimOf("peaceful", fmt.Sprintf("peaceful-%d", i))))
	}
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "hostile-"+name)
		})
	}
}

// The same on a node: staging fails for volumes of hostile definitions only, with an error that names the field.
func TestNode_HostileDefinitions_AffectNoOtherProvisioner(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)))
	n.run(t)
	answers := map[kubelet.Volume]chan error{}
	for name, template := range hostile {
		p := mustCreate(t, n.c, &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: n.Node + "-hostile-" + name}, Spec: pavv1.PavProvisionerSpec{
			ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeStatic},
			VolumeStaging:     pavv1.VolumeStaging{PodTemplate: *field(`{"spec": {"containers": [{"name": "main", "image": ` + strconv.Quote(template) + `}]}}`)},
		}})
		t.Cleanup(func() { mustDeleteLasting(t, n.c, p) })
		accept(t, n.c, p)
		v := kubelet.Volume{Driver: p.Name, Handle: name, Name: "pv-" + p.Name}
		makeVolume(t.Context(), t, n.c, v)
		t.Cleanup(func() { removeVolume(lasting(t), t, n.c, v) })
		answer := make(chan error, 1)
		answers[v] = answer
		go func() { answer <- n.firstAnswer(t, func(ctx context.Context) error { return n.Stage(ctx, v) }) }()
	}
	for i := range 5 {
		n.liveOnce(t, n.volume(t, fmt.Sprintf("peaceful-%d", i)))
	}
	for v, answer := range answers {
		if err := <-answer; err == nil || !strings.Contains(err.Error(), "spec.volumeStaging.podTemplate.spec.containers[0].image") {
			t.Errorf("%s: the answer is %v", v.Handle, err)
		}
		n.unstage(t, v)
	}
	for _, stage := range n.stages(t) { // they only record what failed; the controller agent deletes them
		mustDelete(t, n.c, &stage)
	}
}

// Of 51 provisioners, one fails, and one is poisoned: more of their claims than the agent has workers fail again and again,
// those of the latter at the limits of a template. The other 49 are served. Without PAV_LONG, it is the poisoned one and nine others.
func TestPoisonedProvisioner_HurtsNoOther(t *testing.T) {
	healthy, bad, templates := 9, 24, map[string]string{"poisoned": hostile["loops"]}
	if long() {
		healthy, bad, templates["failing"] = 49, 30, hostile["division"]
	}
	c := start(t)
	run(t, c)
	for i := range healthy {
		driver(t, c, fmt.Sprintf("beside-%d", i))
	}
	alone := lives(t, c, healthy)
	t.Logf("%d claims that were made at once were all bound after %s", healthy, alone.Round(time.Millisecond))
	for name, template := range templates {
		driver(t, c, name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
			p.Spec.VolumeCreation.Capacity = field(strconv.Quote(template))
		})
		var claims []*corev1.PersistentVolumeClaim
		for i := range bad {
			claims = append(claims, mustCreate(t, c, claimOf(name, fmt.Sprintf("%s-%d", name, i))))
		}
		beside := lives(t, c, healthy)
		t.Logf("beside %d of a provisioner that is %s, after %s: %.2f times as long", bad, name, beside.Round(time.Millisecond), float64(beside)/float64(alone))
		for _, claim := range claims {
			wantEvent(t, c, claim, "Warning", "ProvisioningFailed", fmt.Sprintf("PavProvisioner %q", name))
			mustDelete(t, c, claim)
		}
	}
}

// lives makes a claim of each healthy provisioner at once, and deletes them after all are bound. It returns how long that
// took.
func lives(t *testing.T, c *cluster, healthy int) time.Duration {
	t.Helper()
	var served []*corev1.PersistentVolumeClaim
	began := time.Now()
	for i := range healthy {
		served = append(served, mustCreate(t, c, claimOf(fmt.Sprintf("beside-%d", i), fmt.Sprintf("beside-%d", i))))
	}
	for _, claim := range served {
		bound(t, c, claim)
	}
	took := time.Since(began)
	for _, claim := range served {
		mustDelete(t, c, claim)
	}
	for _, claim := range served {
		gone(t, c, volumeOf(claim))
	}
	return took
}

// canary represents values that must be neither logged nor in events: those that users and administrators may keep secret.
const canary = "canary-5d1f0c"

// What is confidential in a volume's life is in no log, at full verbosity, and in no event: parameters, mount options,
// the definition's own text, and what the pods are made of. The second claim's template fails.
func TestSecretsAreNotLogged(t *testing.T) {
	const name = "confidential"
	c := start(t)
	a := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
	secretive := func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		s.Parameters = map[string]string{"password": canary}
		s.MountOptions = []string{"password=" + canary}
		pod := field(`{"spec": {"containers": [{"name": "main", "image": "none", "env": [
			{"name": "FROM_CLASS", "value": "{{ params.password }}"}, {"name": "FROM_TEMPLATE", "value": "` + canary + `"}]}]}}`)
		p.Spec.VolumeCreation.PodTemplate = pod
		p.Spec.VolumeDeletion = &pavv1.VolumeDeletion{PodTemplate: pod}
	}
	driver(t, c, name, secretive)
	driver(t, c, name+"-fails", secretive, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ '` + canary + `'.nothing.at_all }}{{ params.password / 2 }}"`)
	})
	claim := mustCreate(t, c, claimOf(name, name))
	pod, volume := podOf(t, c, claim, pavv1.WorkflowCreation)
	if len(pod.Spec.Containers[0].Env) < 2 || pod.Spec.Containers[0].Env[0].Value != canary {
		t.Errorf("the pod has no secrets: %v", pod.Spec.Containers[0].Env)
	}
	end(t, c, pod, workflow.Result{Handle: "made"}, 0)
	bound(t, c, claim)
	failing := mustCreate(t, c, claimOf(name+"-fails", name+"-fails"))
	wantEvent(t, c, failing, "Warning", "ProvisioningFailed", name+"-fails")
	mustDelete(t, c, claim)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{Error: "it is not empty"}, 4)
	exists(t, c, volume, "is tried again", func(v *pavv1.PavVolume) bool {
		return v.Status.DeletionAttempt == 2 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})
	again, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, again, workflow.Result{}, 0)
	gone(t, c, volume)
	mustDelete(t, c, failing)
	gone(t, c, failing)

	if log := a.Log(); !strings.Contains(log, volume.Name) {
		t.Error("the log says nothing of the volume")
	}
	for line := range strings.Lines(a.Log() + agent.LibraryLogs()) {
		if strings.Contains(line, canary) {
			t.Errorf("the log has a secret: %s", line)
		}
	}
	events := &corev1.EventList{}
	if err := c.Admin.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if strings.Contains(events.Items[i].Message, canary) {
			t.Errorf("an event has a secret: %s", events.Items[i].Message)
		}
	}
}
