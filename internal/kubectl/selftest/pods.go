package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// The paths of the volume in client pods, by volume mode.
const (
	mountPoint = "/data"
	device     = "/dev/pav-volume"
)

// common defines, for all scripts, the data that is written. It is the same for all pods of a test.
const common = `set -eu
pattern() { yes "$TOKEN" | head -c "$BYTES"; }
sum() { sha256sum | cut -c 1-64; }
say() { echo "$2" | head -c 2000 > /dev/termination-log; exit "$1"; }
`

// Exit codes of scripts.
const (
	exitMissing = 3 // the data is missing
	exitCorrupt = 4 // the data is not what was written
	exitWrote   = 5 // a write succeeded that must be refused
)

// The scripts for file systems and for block devices.
const (
	writeFile = `cd "$VOLUME"
why=$( { pattern > "$FILE"; } 2>&1 ) || say 1 "writing a file of $BYTES bytes failed: $why"
sync "$FILE" 2>/dev/null || sync
[ "$(pattern | sum)" = "$(sum < "$FILE")" ] || say 4 "a file has other content than was just written"
`
	checkFile = `cd "$VOLUME"
[ -e "$FILE" ] || say 3 "the file that was written is missing"
[ "$(pattern | sum)" = "$(sum < "$FILE")" ] || say 4 "the file has other content than was written"
`
	listDirectory = `ls -A "$VOLUME" > /dev/null || say 1 "the directory cannot be read"
`
	removeFile = `rm -f "$VOLUME/$FILE" "$VOLUME/$FILE-read-only"
`
	refuseFile = `cd "$VOLUME"
if why=$(touch "$FILE-read-only" 2>&1); then rm -f "$FILE-read-only"; say 5 "a pod that asked for a read-only volume could write to it"; fi
case $why in *[Rr]ead-only*) ;; *) say 5 "writing failed, but not because the volume is read-only: $why";; esac
`
	writeDevice = `[ -b "$VOLUME" ] || say 1 "the volume is not a block device"
why=$(pattern | dd of="$VOLUME" bs=4096 conv=notrunc 2>&1) || say 1 "writing $BYTES bytes failed: $why"
sync
[ "$(pattern | sum)" = "$(head -c "$BYTES" "$VOLUME" | sum)" ] || say 4 "the device has other content than was just written"
`
	readDevice = `[ "$(pattern | sum)" != "$(head -c "$BYTES" "$VOLUME" | sum)" ] || exit 0
[ "$(head -c "${#TOKEN}" "$VOLUME" | tr -d '\0')" != "$TOKEN" ] || say 4 "the device has other content than was written"
say 3 "the data that was written to the device is missing"
`
	sizeOfDevice = `head -c 512 "$VOLUME" > /dev/null || say 1 "the device cannot be read"
`
	refuseDevice = `if printf '%s' "$TOKEN" | dd of="$VOLUME" bs=4096 conv=notrunc 2>/dev/null; then say 5 "a pod that asked for a read-only volume could write to it"; fi
`
	// hold keeps a pod running until it is deleted, so that the volume stays in use.
	hold = `trap 'exit 0' TERM INT; sleep 2147483647 & wait`
)

// client describes a client pod.
type clientPod struct {
	name     string
	volume   volume
	script   string
	holds    bool   // it keeps running after the script has succeeded
	readOnly bool   // it asks for a read-only volume
	node     string // the node on which it runs; "" for any
	not      string // the node on which it must not run; "" for none
}

// pod returns the pod.
func (r *run) pod(c clientPod) *corev1.Pod {
	grace := int64(1)
	work := r.container("work", common+c.script, c)
	pod := &corev1.Pod{
		ObjectMeta: r.meta(r.name, c.name),
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  new(bool),
			SecurityContext:               r.securityContext(),
			Affinity:                      affinity(c.node, c.not),
			Containers:                    []corev1.Container{work},
			Volumes: []corev1.Volume{{Name: "volume", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.volume.claim(), ReadOnly: c.readOnly},
			}}},
		},
	}
	if c.holds {
		pod.Spec.InitContainers = []corev1.Container{work}
		pod.Spec.Containers = []corev1.Container{r.container("hold", hold, c)}
	}
	return pod
}

func (r *run) container(name, script string, c clientPod) corev1.Container {
	no := false
	container := corev1.Container{
		Name:    name,
		Image:   r.options.Image,
		Command: []string{"sh", "-c", script},
		Env: []corev1.EnvVar{
			{Name: "FILE", Value: r.file()},
			{Name: "TOKEN", Value: "written by the test " + r.name},
			{Name: "BYTES", Value: fmt.Sprint(written)},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
	}
	if r.options.User > 0 {
		container.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	path := mountPoint
	if c.volume.block() {
		path = device
		container.VolumeDevices = []corev1.VolumeDevice{{Name: "volume", DevicePath: device}}
	} else {
		container.VolumeMounts = []corev1.VolumeMount{{Name: "volume", MountPath: mountPoint, ReadOnly: c.readOnly}}
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: "VOLUME", Value: path})
	return container
}

// file is the name of the file that the test writes to a volume.
func (r *run) file() string { return "pav-test-" + r.name }

// written is the number of bytes that are written to a volume.
const written = 256 << 10

func (r *run) securityContext() *corev1.PodSecurityContext {
	context := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if r.options.User > 0 {
		yes := true
		context.RunAsUser, context.RunAsNonRoot = &r.options.User, &yes
	}
	if r.options.FSGroup >= 0 {
		context.FSGroup = &r.options.FSGroup
	}
	return context
}

// affinity restricts a pod to a node, or keeps it away from one. It leaves the choice to the scheduler, as the claim
// may wait for a first consumer.
func affinity(node, not string) *corev1.Affinity {
	requirement := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	switch {
	case node == "" && not == "":
		return nil
	case node == "":
		requirement.Operator, requirement.Values = corev1.NodeSelectorOpNotIn, []string{not}
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{requirement}}},
	}}}
}

// podError is the failure of a pod's script.
type podError struct {
	pod     string
	code    int32
	message string
}

func (e *podError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("pod %s failed with exit code %d", e.pod, e.code)
	}
	return e.message
}

// missed reports whether the written data was missing.
func missed(err error) bool {
	var failed *podError
	return errors.As(err, &failed) && failed.code == exitMissing
}

// runPod creates a pod and waits until its script has succeeded. It returns the node that it ran on.
func (r *run) runPod(ctx context.Context, c clientPod) (node string, err error) {
	pod := r.pod(c)
	if err := r.post(ctx, pod); err != nil {
		return "", fmt.Errorf("creating pod %s: %w", c.name, err)
	}
	return r.awaitPod(ctx, c.name)
}

// awaitPod waits until the script of a pod has succeeded.
func (r *run) awaitPod(ctx context.Context, name string) (node string, err error) {
	err = r.troubles.during(ctx, func(ctx context.Context) error {
		return await(ctx, r.client, &corev1.PodList{}, func(seen objects) (bool, error) {
			pod, _ := seen[client.ObjectKey{Namespace: r.name, Name: name}].(*corev1.Pod)
			if pod == nil {
				return false, fmt.Errorf("pod %s was deleted", name)
			}
			node = pod.Spec.NodeName
			return podDone(pod)
		}, only(r.name, name)...)
	})
	if errors.Is(err, errTimeout) {
		err = errors.Join(fmt.Errorf("pod %s has not succeeded: %w", name, err), r.lastEvent(ctx, "Pod", name))
	}
	return node, err
}

// podDone reports whether the script of a pod has ended, and with which error.
func podDone(pod *corev1.Pod) (bool, error) {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true, nil
	case corev1.PodRunning:
		// In a pod that keeps running, the script is that of an init container.
		return len(pod.Spec.InitContainers) > 0, nil
	case corev1.PodFailed:
		statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
		for i := range statuses {
			if t := statuses[i].State.Terminated; t != nil && t.ExitCode != 0 {
				return false, &podError{pod: pod.Name, code: t.ExitCode, message: cli.Plain(strings.TrimSpace(t.Message))}
			}
		}
		return false, &podError{pod: pod.Name, message: cli.Plain(strings.TrimSpace(pod.Status.Reason + ": " + pod.Status.Message))}
	default:
		return false, nil
	}
}

// lastEvent returns the last warning about an object of the test as an error, or nil.
func (r *run) lastEvent(ctx context.Context, kind, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	events := &corev1.EventList{}
	selected := client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name, "type": corev1.EventTypeWarning}
	if err := r.client.List(ctx, events, client.InNamespace(r.name), selected); err != nil || len(events.Items) == 0 {
		return nil // Events only add an explanation.
	}
	last := &events.Items[0]
	for i := range events.Items {
		if event := &events.Items[i]; when(event).After(when(last)) {
			last = event
		}
	}
	return fmt.Errorf("%s: %s", last.Reason, cli.Plain(last.Message))
}
