package workflow

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ordinary are the capabilities that do not count as rights on the node: those that container runtimes give every
// container, and NET_ADMIN, which a pod has in its own network only. Sidecars of service meshes add the last two.
var ordinary = []corev1.Capability{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
	"SETPCAP", "SETUID", "SYS_CHROOT", "NET_RAW", "NET_ADMIN",
}

// controlPlane are the keys of tolerations that let a pod onto control-plane nodes; the empty one tolerates everything.
var controlPlane = []string{"", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// NodeRights returns what of a pod amounts to rights on its node, or passes by what keeps pods from a node, sorted:
// each is the path of a field, with its value where that matters. A pod without any is confined to its containers.
//
// Profiles of seccomp, AppArmor and SELinux are left out: without one of the rights here, the absence of a profile
// gives none. So are volumes of other kinds and Secrets, which are no rights on a node.
//
// The webhook's configuration says the same, in the conditions of the controller agent's pods.
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
