package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The provisioners of volumes in use: their staging pods mount a tmpfs, and one's completes while the
// other's is ready and runs on. Their scripts work after a reboot, too, which takes all mounts away.
const (
	completing = "completing"
	running    = "running"

	stageCompleting = "mkdir -p /pav/volume; mount -t tmpfs -o size=8m pav-e2e /pav/volume"
	stageRunning    = stageCompleting + "; touch /pav/ready; trap 'umount /pav/volume; exit 0' TERM; sleep infinity & wait"
	unstageBoth     = "if grep ' /pav/volume ' /proc/mounts; then umount /pav/volume; fi"
)

// busyPod returns a pod that writes records to its claims forever, and reads them and earlier ones back. It ends with an
// error if a request fails or a record differs from what was written.
func busyPod(name, node, restartPolicy string, claims ...string) string {
	return scriptPod(name, node, restartPolicy, busyScript, claims...)
}

// scriptPod returns a pod that runs a script with claims at /data. What the script counts in /progress/rounds can be read
// from the node also while no kubelet and no API server runs.
func scriptPod(name, node, restartPolicy, script string, claims ...string) string {
	var mounts, devices, volumes strings.Builder
	for _, claim := range claims {
		if claim == blocking {
			fmt.Fprintf(&devices, "      volumeDevices: [{name: %[1]s, devicePath: /dev/data-%[1]s}]\n", claim)
		} else {
			fmt.Fprintf(&mounts, "        - {name: %[1]s, mountPath: /data/%[1]s}\n", claim)
		}
		fmt.Fprintf(&volumes, "    - {name: %[1]s, persistentVolumeClaim: {claimName: %[1]s}}\n", claim)
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  nodeSelector: {%s}
  restartPolicy: %s
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: busybox:1.37.0
      command: [bash, -uc]
      args:
        - |
%s
      volumeMounts:
        - {name: progress, mountPath: /progress}
%s%s
  volumes:
    - {name: progress, emptyDir: {}}
%s`, name, selector(node), restartPolicy, indent(script, 10), mounts.String(), devices.String(), volumes.String())
}

// busyScript keeps the last 40 records of each volume, and reads the one of 30 rounds ago again; of a
// device, it keeps the last one. It uses what is built into bash, so that it hardly disturbs a small machine.
const busyScript = `
fail() { echo "round $round on $volume: $1" >&2; exit 1; }
check() {
  read -r got < "$volume/$HOSTNAME/$(($1 % 40))" || fail "reading record $1"
  test "$got" = "record $1 of $HOSTNAME" || fail "record $1 is '$got'"
}
round=0
for volume in /data/*; do mkdir -p "$volume/$HOSTNAME" || fail "making a directory"; done
while true; do
  round=$((round + 1))
  for volume in /data/*; do
    echo "record $round of $HOSTNAME" > "$volume/$HOSTNAME/$((round % 40))" || fail "writing"
    check $round
    test $round -le 30 || check $((round - 30))
  done
  for volume in /dev/data-*; do
    test -e "$volume" || continue
    echo "record $round of $HOSTNAME" > "$volume" || fail "writing"
    read -r got < "$volume" || fail "reading"
    test "$got" = "record $round of $HOSTNAME" || fail "the record is '$got'"
  done
  echo $round > /progress/rounds || fail "counting"
  sleep 0.1
done
`

// usage is a volume of each of the provisioners in use: on each of some nodes, by one client that never ends.
type usage struct {
	namespace string
	clients   map[string]corev1.Pod // by node, as they were in the beginning
	staging   map[types.UID]string  // the staging pods' names in the beginning
}

// useVolumes makes the volumes, and a client of all of them on each of the nodes, and waits until they are busy.
func useVolumes(t *testing.T, namespace string, on ...string) *usage {
	t.Helper()
	u := &usage{namespace: namespace, clients: map[string]corev1.Pod{}}
	apply(t, namespace, documents(
		provisioner(completing, stageCompleting, unstageBoth), storageClass(completing), claim(completing, completing, "ReadWriteMany"),
		provisioner(running, stageRunning, unstageBoth), storageClass(running), claim(running, running, "ReadWriteMany")))
	apply(t, namespace, localVolumes(t, "ReadWriteMany"))
	for _, node := range on {
		apply(t, namespace, busyPod("busy-"+node, node, "Never", inUse...))
	}
	for _, node := range on {
		waitRunning(t, namespace, "busy-"+node)
		pod := corev1.Pod{}
		must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "busy-" + node}, &pod))
		u.clients[node] = pod
	}
	u.checkProgress(t)
	var err error
	u.staging, err = u.stagingPods(t.Context())
	must(t, err)
	if len(u.staging) != len(inUse)*len(on) {
		t.Fatalf("%d staging pods on %d nodes, want %d a node", len(u.staging), len(on), len(inUse))
	}
	return u
}

// stagingPods returns the names of the staging pods of the volumes in use, with their restarts.
func (u *usage) stagingPods(ctx context.Context) (map[types.UID]string, error) {
	found := map[types.UID]string{}
	for _, provisioner := range inUse {
		pods, err := stagingPods(ctx, provisioner)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			found[pods[i].UID] = fmt.Sprintf("%s, restarted %d times", pods[i].Name, restarts(&pods[i]))
		}
	}
	return found, nil
}

func restarts(pod *corev1.Pod) int32 {
	var n int32
	for i := range pod.Status.ContainerStatuses {
		n += pod.Status.ContainerStatuses[i].RestartCount
	}
	return n
}

// checkProgress fails the test unless every client does more rounds. It asks neither kubelet nor the API server.
func (u *usage) checkProgress(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	for node := range u.clients {
		pod := u.clients[node]
		before := 0 // Its first round may be under way.
		if err := poll(ctx, func(ctx context.Context) error {
			rounds, err := rounds(ctx, &pod)
			if err != nil {
				return err
			}
			if before == 0 || rounds < before { // A client that was started again counts again.
				before = rounds
			}
			if rounds < before+5 {
				return fmt.Errorf("%d rounds, and %d at first", rounds, before)
			}
			return nil
		}); err != nil {
			log, logErr := onNode(t.Context(), node, "tail", fmt.Sprintf("/var/log/pods/%s_%s_%s/main/0.log", pod.Namespace, pod.Name, pod.UID))
			t.Fatalf("the client on %s does not go on: %v; its log (%v): %s", node, err, logErr, log)
		}
	}
}

// rounds returns how far the script of a pod is, as seen from its node.
func rounds(ctx context.Context, pod *corev1.Pod) (int, error) {
	text, err := onNode(ctx, pod.Spec.NodeName, "cat", fmt.Sprintf("%s/pods/%s/volumes/kubernetes.io~empty-dir/progress/rounds", kubeletDir, pod.UID))
	if err != nil {
		return 0, err
	}
	rounds, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("the counter is being written: %w", err)
	}
	return rounds, nil
}

// checkUndisturbed fails the test unless every client still runs as the same process, and no staging pod was replaced,
// repeated or restarted.
func (u *usage) checkUndisturbed(t *testing.T) {
	t.Helper()
	for node, before := range u.clients {
		pod := &corev1.Pod{}
		must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(&before), pod))
		if diff := cmp.Diff(identity(&before), identity(pod)); diff != "" {
			t.Errorf("the client on %s was disturbed (-before +after):\n%s", node, diff)
		}
	}
	staging, err := u.stagingPods(t.Context())
	must(t, err)
	if diff := cmp.Diff(u.staging, staging); diff != "" {
		t.Errorf("the staging pods of volumes in use were disturbed (-before +after):\n%s", diff)
	}
	u.checkProgress(t)
}

// identity is what does not change of a pod while its containers run without interruption.
func identity(pod *corev1.Pod) map[string]string {
	id := map[string]string{"uid": string(pod.UID), "phase": string(pod.Status.Phase)}
	for i := range pod.Status.ContainerStatuses {
		id["container "+pod.Status.ContainerStatuses[i].Name] = pod.Status.ContainerStatuses[i].ContainerID
	}
	return id
}

// pause waits for the duration of a failure, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
