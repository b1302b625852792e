package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/kubectl/version"
	"github.com/albertofaria/pav/internal/workflow"
)

// checkController checks whether the replicas of the controller agent are ready, and one of them leads.
func checkController(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(getDeployment); rows != nil {
		return rows, ""
	}
	if f.Deployment == nil {
		return []Row{problem(fmt.Sprintf("Deployment %s does not exist in namespace %s", agent.Controller, f.Namespace), reinstall())}, ""
	}
	wanted := f.replicas()
	if wanted == 0 {
		return []Row{problem("the controller agent is scaled to 0: no volume is created or deleted",
			step("start it", "kubectl -n %s scale deployment/%s --replicas=2", f.Namespace, agent.Controller))}, ""
	}
	if ready := f.Deployment.Status.ReadyReplicas; ready < wanted {
		message := fmt.Sprintf("%d of %s ready", ready, plural(int(wanted), "replica is", "replicas are"))
		return []Row{problem(because(message, f.agents(agent.Controller)),
			status.Step{Text: "see the pods", Command: f.controllerPods()},
			status.Step{Text: "and their logs", Command: f.controllerLogs()})}, ""
	}
	rows, leads := checkLeader(f)
	return rows, fmt.Sprintf("%s ready in namespace %s; %s", plural(int(wanted), "replica is", "replicas are"), f.Namespace, leads)
}

// replicas returns how many replicas of the controller agent there should be.
func (f *Facts) replicas() int32 {
	if wanted := f.Deployment.Spec.Replicas; wanted != nil {
		return *wanted
	}
	return 1
}

// hasArgument reports whether the controller agent has an argument.
func hasArgument(deployment *appsv1.Deployment, argument string) bool {
	return slices.ContainsFunc(deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return slices.Contains(c.Args, argument) })
}

// because adds to a message why the first of the pods cannot run, if that is known.
func because(message string, pods []*corev1.Pod) string {
	for _, pod := range pods {
		if cause := workflow.Waiting(pod); cause != "" && readySince(pod) == nil {
			return message + ": " + cause
		}
	}
	return message
}

// controllerPods is the command that shows the replicas.
func (f *Facts) controllerPods() string {
	return fmt.Sprintf("kubectl -n %s get pods -o wide -l %s=%s", f.Namespace, agent.ComponentLabel, agent.Controller)
}

// controllerLogs is the command that shows the logs of all replicas.
func (f *Facts) controllerLogs() string {
	return fmt.Sprintf("kubectl -n %s logs -l %s=%s --prefix --tail=20", f.Namespace, agent.ComponentLabel, agent.Controller)
}

// staleLease is how old a leader's last renewal may be. Leaders renew each few seconds, but clocks differ.
const staleLease = 5 * time.Minute

// checkLeader checks whether one of the replicas leads the others, and so works.
func checkLeader(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(getLease, listAgents); rows != nil {
		return rows, ""
	}
	see := status.Step{Text: "see why", Command: f.controllerLogs()}
	if f.Lease == nil || f.Lease.Spec.HolderIdentity == nil || *f.Lease.Spec.HolderIdentity == "" {
		if hasArgument(f.Deployment, "--leader-elect=false") {
			return nil, "--leader-elect is false, so it needs no leader"
		}
		return []Row{problem("no replica of the controller agent leads, so none works", see)}, ""
	}
	// The identity is the name of the pod, and a UUID.
	name, _, _ := strings.Cut(*f.Lease.Spec.HolderIdentity, "_")
	at := slices.IndexFunc(f.agents(agent.Controller), func(pod *corev1.Pod) bool { return pod.Name == name && readySince(pod) != nil })
	if at < 0 {
		return []Row{problem(fmt.Sprintf("the leader, %s, is not a pod of the controller agent that is ready", name), see)}, ""
	}
	if renewed := f.Lease.Spec.RenewTime; renewed != nil && f.Now.Sub(renewed.Time) > staleLease {
		return []Row{problem(fmt.Sprintf("the leader, %s, has not renewed its Lease for %s", name, cli.Duration(f.Now.Sub(renewed.Time))), see)}, ""
	}
	return nil, "pod " + name + " leads"
}

// checkVersions compares the versions of the agents and of the plugin.
func checkVersions(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(listAgents); rows != nil {
		return rows, ""
	}
	if skew := version.Compare(f.Version, f.Namespace, f.Agents).Skew; skew != "" {
		return []Row{problem(skew, status.Step{Text: "see all versions", Command: "kubectl pav version"})}, ""
	}
	return nil, "the agents and this plugin have version " + cmp.Or(f.Version, "unknown")
}
