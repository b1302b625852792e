package e2e

import (
	"fmt"
	"strings"
)

// provisioner returns a PavProvisioner of both modes whose staging and unstaging containers, which
// are privileged, run the scripts. An empty script for unstaging means that there is no unstaging pod.
func provisioner(name, stage, unstage string) string {
	yaml := fmt.Sprintf(`
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: %s
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation:
    capacity: "{{ requestedMinCapacity }}"
  volumeStaging:
    podTemplate:%s`, name, container(stage))
	if unstage != "" {
		yaml += "\n  volumeUnstaging:\n    podTemplate:" + container(unstage)
	}
	return yaml
}

func container(script string) string {
	return `
      spec:
        terminationGracePeriodSeconds: 1
        containers:
          - name: main
            image: busybox:1.37.0
            securityContext:
              privileged: true
            command: [bash, -ec]
            args:
              - |
` + indent(script, 16)
}

func indent(text string, by int) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		out.WriteString(strings.Repeat(" ", by) + line)
	}
	return out.String()
}

// storageClass returns a StorageClass of a provisioner, of the same name.
func storageClass(provisioner string) string {
	return fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: %[1]s\nprovisioner: %[1]s\n", provisioner)
}

// claim returns a claim of a class with one access mode.
func claim(name, class, mode string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: %s
spec:
  storageClassName: %q
  accessModes: [%s]
  resources:
    requests:
      storage: 1Mi
`, name, class, mode)
}

// client returns a pod that runs forever with a claim at /data; on a node, unless that is empty.
func clientPod(name, claim, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  nodeSelector: {%s}
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: busybox:1.37.0
      command: [sleep, infinity]
      volumeMounts:
        - {name: data, mountPath: /data}
  volumes:
    - name: data
      persistentVolumeClaim: {claimName: %s}
`, name, selector(node), claim)
}

func selector(node string) string {
	if node == "" {
		return ""
	}
	return "kubernetes.io/hostname: " + node
}

// documents joins YAML documents.
func documents(parts ...string) string { return strings.Join(parts, "\n---\n") }
