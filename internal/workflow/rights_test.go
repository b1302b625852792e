package workflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestNodeRights(t *testing.T) {
	secured := func(security corev1.SecurityContext) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}, {Name: "other", SecurityContext: &security}}}
	}
	adding := func(capabilities ...corev1.Capability) corev1.PodSpec {
		return secured(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: capabilities}})
	}
	tolerating := func(tolerations ...corev1.Toleration) corev1.PodSpec { return corev1.PodSpec{Tolerations: tolerations} }
	const reaches = "spec.tolerations of control-plane nodes"
	process := &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"an empty pod has none": {},
		"a pod that is confined has none": {spec: corev1.PodSpec{
			NodeSelector:    map[string]string{"zone": "a"},
			Tolerations:     []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(0))},
			Volumes:         []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers:      []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{Privileged: new(false)}}},
		}},
		"a node's name":        {spec: corev1.PodSpec{NodeName: "n"}, want: []string{"spec.nodeName=n"}},
		"the node's network":   {spec: corev1.PodSpec{HostNetwork: true}, want: []string{"spec.hostNetwork"}},
		"the node's processes": {spec: corev1.PodSpec{HostPID: true}, want: []string{"spec.hostPID"}},
		"the node's IPC":       {spec: corev1.PodSpec{HostIPC: true}, want: []string{"spec.hostIPC"}},
		"a process of a Windows node": {
			spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{WindowsOptions: process}},
			want: []string{"spec.securityContext.windowsOptions.hostProcess"},
		},
		"a container that is one": {
			spec: secured(corev1.SecurityContext{WindowsOptions: process}),
			want: []string{"spec.containers[other].securityContext.windowsOptions.hostProcess"},
		},
		"directories of the node, each of them once": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/b"}}},
				{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}},
				{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}},
			}},
			want: []string{"spec.volumes.hostPath=/a", "spec.volumes.hostPath=/b"},
		},
		"a toleration of control-plane nodes":   {spec: tolerating(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}), want: []string{reaches}},
		"a toleration by their former name":     {spec: tolerating(corev1.Toleration{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}), want: []string{reaches}},
		"a toleration of everything":            {spec: tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), want: []string{reaches}},
		"a toleration of another taint is none": {spec: tolerating(corev1.Toleration{Key: "disks", Operator: corev1.TolerationOpExists})},
		"a privileged container, which needs no capabilities": {
			spec: secured(corev1.SecurityContext{Privileged: new(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}),
			want: []string{"spec.containers[other].securityContext.privileged"},
		},
		"a privileged init container": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}},
			want: []string{"spec.containers[init].securityContext.privileged"},
		},
		"capabilities beyond those of every container": {
			spec: adding("CHOWN", "SYS_ADMIN", "NET_ADMIN", "ALL"),
			want: []string{"spec.containers[other].securityContext.capabilities.add=ALL", "spec.containers[other].securityContext.capabilities.add=SYS_ADMIN"},
		},
		"those of every container, and of a sidecar's network, are none": {spec: adding("NET_RAW", "NET_ADMIN", "SETUID")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, NodeRights(&tt.spec)); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}
