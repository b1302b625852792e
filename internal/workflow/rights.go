package workflow

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ordinary are the capabilities that do not count as rights on the node: those that container runtimes give every
// container, and NET_ADMIN, which applies only to the pod's own network. Sidecars of service meshes add the last two.
var ordinary = []corev1.Capability{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
	"SETPCAP", "SETUID", "SYS_CHROOT", "NET_RAW", "NET_ADMIN",
}

// controlPlane are the keys of tolerations with which a pod can run on control-plane nodes; the empty one tolerates
// everything.
var controlPlane = []string{"", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// NodeRights returns the fields of a pod that give it rights on its node, or bypass restrictions of a node, sorted:
// each is the path of a field, with its value if that matters. A pod without any is confined to its containers.
//
// Profiles of seccomp, AppArmor and SELinux are left out: without one of these rights, the absence of a profile gives
// none. Volumes of other kinds and Secrets are left out as well, as they give no rights on a node.
//
// The webhook's configuration has the same rules, in the conditions of the controller agent's pods.
func NodeRights(spec *corev1.PodSpec) []string {
	var rights []string
	add := func(has bool, format string, args ...any) {
		if has {
			rights = append(rights, fmt.Sprintf(format, args...))
		}
	}
	add(spec.NodeName != "", "spec.nodeName=%s", spec.NodeName)
	add(spec.HostNetwork, "spec.hostNetwork")
	add(spec.HostPID, "spec.hostPID")
	add(spec.HostIPC, "spec.hostIPC")
	add(spec.SecurityContext != nil && isHostProcess(spec.SecurityContext.WindowsOptions), "spec.securityContext.windowsOptions.hostProcess")
	add(slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return slices.Contains(controlPlane, t.Key) }),
		"spec.tolerations of control-plane nodes")
	for _, volume := range spec.Volumes {
		if volume.HostPath != nil {
			add(true, "spec.volumes.hostPath=%s", volume.HostPath.Path)
		}
	}
	eachContainer(spec, func(container *corev1.Container) {
		security := container.SecurityContext
		if security == nil {
			return
		}
		path := fmt.Sprintf("spec.containers[%s].securityContext", container.Name)
		add(isHostProcess(security.WindowsOptions), "%s.windowsOptions.hostProcess", path)
		if security.Privileged != nil && *security.Privileged {
			add(true, "%s.privileged", path)
			return // it has all capabilities
		}
		if security.Capabilities == nil {
			return
		}
		for _, capability := range security.Capabilities.Add {
			add(!slices.Contains(ordinary, capability), "%s.capabilities.add=%s", path, capability)
		}
	})
	slices.Sort(rights)
	return slices.Compact(rights)
}

func isHostProcess(options *corev1.WindowsSecurityContextOptions) bool {
	return options != nil && options.HostProcess != nil && *options.HostProcess
}
