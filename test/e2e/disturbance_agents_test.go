package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The components whose pods are agents, as their labels and containers say.
const (
	nodeAgent       = "node-agent"
	controllerAgent = "controller-agent"
)

// disturbance is a way to end an agent.
type disturbance struct {
	name    string
	killed  bool // its process is killed
	deleted bool // its pod is deleted by force, so that another one starts at once
}

var (
	killProcess    = disturbance{name: "process killed", killed: true}
	killAndReplace = disturbance{name: "process killed and pod replaced", killed: true, deleted: true}

	// While kubelet still stops the old agent, the new one may work already.
	replace = disturbance{name: "pod replaced", deleted: true}
)

// chooseDisturbance chooses one from which the agent recovers soon. An agent that has been restarted is replaced, not
// killed, since kubelet delays each further restart.
func chooseDisturbance(random *rand.Rand, agent *corev1.Pod) disturbance {
	choices := []disturbance{killProcess, killProcess, killAndReplace, killAndReplace, replace}
	if restarts(agent) > 0 {
		choices = choices[2:]
	}
	return choices[random.IntN(len(choices))]
}

// agents returns the pods of the agents, in an order that depends on more than their random names.
func agents(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := kube.List(ctx, pods, client.InNamespace("pav")); err != nil {
		return nil, err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return strings.Compare(component(&a)+a.Spec.NodeName+a.Name, component(&b)+b.Spec.NodeName+b.Name)
	})
	return pods.Items, nil
}

func component(agent *corev1.Pod) string { return agent.Labels["app.kubernetes.io/component"] }

// chooseAgent chooses the agent to disturb while something is done: most of the time the one whose
// work it is, which for claims is the leader of the controller agents.
func chooseAgent(ctx context.Context, random *rand.Rand, during activity) (*corev1.Pod, error) {
	all, err := agents(ctx)
	if err != nil || len(all) == 0 {
		return nil, errors.Join(err, errors.New("which agents are there?"))
	}
	var responsible func(*corev1.Pod) bool
	switch during.what {
	case makingClaim, deletingClaim:
		lease := &coordinationv1.Lease{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "pav", Name: "pav-controller"}, lease); err != nil {
			return nil, err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		responsible = func(agent *corev1.Pod) bool { return strings.HasPrefix(holder, agent.Name+"_") }
	default:
		responsible = func(agent *corev1.Pod) bool {
			return component(agent) == nodeAgent && agent.Spec.NodeName == during.node
		}
	}
	chosen := &all[random.IntN(len(all))]
	if i := slices.IndexFunc(all, func(agent corev1.Pod) bool { return responsible(&agent) }); i >= 0 && random.IntN(4) > 0 {
		chosen = &all[i]
	}
	return chosen, nil
}

// killScript kills the process of an agent's container, and no other: the process in the container's cgroup with the
// agent's command line. $1 is the container, $2 the
// subcommand. There may be none: a leader ends by itself when it has lost its lease.
const killScript = `
for group in $(grep -lsE "/$1\$" /proc/[0-9]*/cgroup); do
  process=${group%/cgroup}
  case "$(tr '\0' ' ' < "$process/cmdline")" in
    "/pav $2 "*) kill -KILL "${process#/proc/}" && echo killed ;;
  esac
done
true
`

// apply disturbs an agent, and says whether a process was killed.
func (d disturbance) apply(ctx context.Context, agent *corev1.Pod) (bool, error) {
	killed := false
	if d.killed {
		var err error
		if killed, err = killAgent(ctx, agent); err != nil {
			return false, err
		}
	}
	if !d.deleted {
		return killed, nil
	}
	err := kube.Delete(ctx, agent, client.GracePeriodSeconds(0), client.Preconditions{UID: &agent.UID})
	return killed, client.IgnoreNotFound(err)
}

func killAgent(ctx context.Context, agent *corev1.Pod) (bool, error) {
	id := containerID(agent)
	if id == "" {
		return false, fmt.Errorf("agent %s has no container", agent.Name)
	}
	out, err := onNode(ctx, agent.Spec.NodeName, "bash", "-c", killScript, "kill-agent", id, strings.TrimSuffix(component(agent), "-agent"))
	return out == "killed\n", err
}

// containerID returns the ID of an agent's container, without its runtime's name.
func containerID(agent *corev1.Pod) string {
	if len(agent.Status.ContainerStatuses) == 0 {
		return ""
	}
	_, id, _ := strings.Cut(agent.Status.ContainerStatuses[0].ContainerID, "://")
	return id
}

// waitAgents waits until all agents are ready, none of them in the container that has ended, if any.
func waitAgents(t *testing.T, ended string) {
	t.Helper()
	eventually(t, "all agents are ready", func(ctx context.Context) error { return agentsReady(ctx, ended) })
}

func agentsReady(ctx context.Context, ended string) error {
	all, err := agents(ctx)
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i := range all {
		agent := &all[i]
		status := agent.Status.ContainerStatuses
		if agent.DeletionTimestamp != nil || len(status) == 0 || !status[0].Ready || containerID(agent) == ended {
			return fmt.Errorf("agent %s on %s is not ready", agent.Name, agent.Spec.NodeName)
		}
		at[component(agent)]++
		if component(agent) == nodeAgent {
			at[agent.Spec.NodeName]++
		}
	}
	for _, node := range nodes {
		if at[node] != 1 {
			return fmt.Errorf("%d node agents on %s, want one", at[node], node)
		}
	}
	if at[controllerAgent] != 2 {
		return fmt.Errorf("%d controller agents, want two", at[controllerAgent])
	}
	return definitionsAreJudged(ctx)
}

// definitionsAreJudged objects unless the API server reaches the webhook: without it, no PavProvisioner can
// be written.
func definitionsAreJudged(ctx context.Context) error {
	probe := &pavv1.PavProvisioner{}
	if err := yaml.UnmarshalStrict([]byte(provisioner("probe", "mkdir /pav/volume", "")), probe); err != nil {
		return err
	}
	return kube.Create(ctx, probe, client.DryRunAll)
}
