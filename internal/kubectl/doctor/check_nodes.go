package doctor

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/protocol"
)

// checkNodeAgents checks whether a node agent is ready on each node that should have one.
func checkNodeAgents(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(getDaemonSet, listAgents, listNodes); rows != nil {
		return rows, ""
	}
	if f.DaemonSet == nil {
		return []Row{problem(fmt.Sprintf("DaemonSet %s does not exist in namespace %s", agent.Node, f.Namespace), reinstall())}, ""
	}
	var down, missing, unready []string
	var pods []*corev1.Pod
	ready := 0
	for i := range f.Nodes {
		node := &f.Nodes[i]
		pod := f.agentOn(node.Name)
		switch {
		case !f.wantsAgent(node) && pod == nil:
		case !isUp(node):
			down = append(down, node.Name)
		case pod == nil && f.settled(node.CreationTimestamp):
			missing = append(missing, node.Name)
		case pod != nil && readySince(pod) == nil && f.settled(pod.CreationTimestamp):
			unready, pods = append(unready, node.Name), append(pods, pod)
		case pod != nil:
			ready++
		}
	}
	if len(down) > 0 {
		rows = append(rows, problem("not ready, and so without a node agent that works: "+listed(down),
			status.Step{Text: "repair the node", Command: "kubectl describe node " + down[0]}))
	}
	if len(missing) > 0 {
		rows = append(rows, problem("no node agent runs on "+listed(missing),
			step("see why", "kubectl -n %s describe daemonset %s", f.Namespace, agent.Node)))
	}
	if len(unready) > 0 {
		rows = append(rows, problem(because("the node agent is not ready on "+listed(unready), pods),
			step("see why", "kubectl -n %s describe pod %s", f.Namespace, pods[0].Name),
			step("and see its log", "kubectl -n %s logs %s --tail=20", f.Namespace, pods[0].Name)))
	}
	if ready == 0 && len(rows) == 0 {
		rows = append(rows, problem("no node is selected by the DaemonSet, so no volume can be staged",
			step("see its node selector", "kubectl -n %s get daemonset %s -o wide", f.Namespace, agent.Node)))
	}
	return rows, fmt.Sprintf("it is ready on %s", counted(ready, "node"))
}

// wantsAgent reports whether the DaemonSet certainly selects a node. With an affinity of the installer's, that is not
// known, and only the nodes that have an agent count.
func (f *Facts) wantsAgent(node *corev1.Node) bool {
	spec := &f.DaemonSet.Spec.Template.Spec
	return spec.Affinity == nil && labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(node.Labels)) && isLinux(node)
}

func isLinux(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == string(corev1.Linux)
}

func isUp(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// checkDrivers checks whether the drivers of PaV and of the provisioners are registered wherever a node agent is ready.
func checkDrivers(f *Facts) (rows []Row, well string) {
	rows = f.unknown(listCSIDrivers)
	if rows == nil && !slices.ContainsFunc(f.CSIDrivers, func(d storagev1.CSIDriver) bool { return d.Name == pavv1.Driver }) {
		rows = append(rows, problem(fmt.Sprintf("CSIDriver %s does not exist, so no workflow pod gets its /pav", pavv1.Driver), reinstall()))
	}
	if unknown := f.unknown(listCSINodes, listAgents, listNodes, listProvisioner); unknown != nil {
		return append(rows, unknown...), ""
	}
	registrations := map[string]*storagev1.CSINode{}
	for i := range f.CSINodes {
		registrations[f.CSINodes[i].Name] = &f.CSINodes[i]
	}
	nodes, drivers := f.readyNodes(), f.drivers()
	for _, driver := range drivers {
		var missing []string
		for node := range nodes {
			if registration := registrations[node]; registration == nil || !protocol.IsRegistered(registration, driver) {
				missing = append(missing, node)
			}
		}
		if len(missing) == 0 {
			continue
		}
		slices.Sort(missing)
		rows = append(rows, problem(fmt.Sprintf("driver %s is not registered on %s", driver, listed(missing)),
			step("see the node agent's log", "kubectl -n %s logs %s --tail=20", f.Namespace, nodes[missing[0]].Name),
			step("its --kubelet-dir must be the kubelet's --root-dir", "kubectl -n %s get daemonset %s -o yaml", f.Namespace, agent.Node)))
	}
	if len(nodes) == 0 {
		rows = append(rows, Row{Result: Unknown, Message: "no node agent has been ready for long enough to tell"})
	}
	return rows, fmt.Sprintf("%s registered on %s", plural(len(drivers), "driver is", "drivers are"), counted(len(nodes), "node"))
}

// readyNodes returns the node agents that have been ready for long enough, by node.
func (f *Facts) readyNodes() map[string]*corev1.Pod {
	found := map[string]*corev1.Pod{}
	for i := range f.Nodes {
		node := &f.Nodes[i]
		if pod := f.agentOn(node.Name); pod != nil && isLinux(node) && isUp(node) {
			if since := readySince(pod); since != nil && f.settled(*since) {
				found[node.Name] = pod
			}
		}
	}
	return found
}

// drivers returns the names of the drivers that each node must have.
func (f *Facts) drivers() []string {
	names := []string{pavv1.Driver}
	for i := range f.Provisioners {
		p := &f.Provisioners[i]
		ready := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerReady)
		if p.DeletionTimestamp == nil && ready != nil && ready.Status == metav1.ConditionTrue && f.settled(ready.LastTransitionTime) {
			names = append(names, p.Name)
		}
	}
	return names
}
