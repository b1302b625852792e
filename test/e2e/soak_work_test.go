package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// soakMedia are what the volumes of the soak are made of. All nodes reach the storage.
var soakMedia = []medium{directories, fuse, devices}

// roll ends a script one time in ten.
const roll = "if [ $((RANDOM % 10)) = 0 ]; then echo 'bad luck' >&2; exit 3; fi"

// newSoakStorage makes a provisioner of volumes of a medium and its class. Creation and deletion pods fail one
// time in five, before or after their effect.
func newSoakStorage(t *testing.T, namespace string, m medium) *ledger {
	t.Helper()
	directory, err := os.MkdirTemp(filepath.Dir(os.Getenv("KUBECONFIG")), "storage-") //nolint:usetesting // No node sees the usual place.
	must(t, err)
	l := &ledger{name: "soak-" + m.name, namespace: namespace, directory: directory}
	for _, sub := range []string{"hooks", "data"} {
		must(t, os.Mkdir(filepath.Join(directory, sub), 0o777)) //nolint:gosec // Pods of any user write to it.
	}
	t.Cleanup(func() {
		l.checkDetached(t)
		must(t, os.RemoveAll(directory))
	})
	create := roll + "\nmkdir -p \"/storage/data/$volume\"\n" + roll + "\nprintf %s {{ requestedMinCapacity }} > /pav/capacity"
	remove := roll + "\nrm -rf \"/storage/data/$volume\" \"/storage/data/$volume.img\"\n" + roll
	l.yaml = strings.Replace(l.storageYAML(m), `
    capacity: "{{ requestedMinCapacity }}"
`, l.pod("create", "{{ defaultHandle }}", create)+`
  volumeDeletion:`+l.pod("delete", "{{ defaultHandle }}", remove)+"\n", 1)
	apply(t, "default", l.yaml)
	return l
}

// soaker lets claims and their clients come and go, one after the other. Each client reads what the one before wrote.
type soaker struct {
	storage *ledger
	medium  medium
	static  bool
	random  *rand.Rand

	rounds atomic.Int32
	doing  atomic.Value // a string
	fresh  bool         // nobody has written to the static volume yet
}

// soakWithin is how long a step of a soaker may take: a node may be away meanwhile, and pods fail again and again.
const soakWithin = 20 * time.Minute

func (s *soaker) name() string {
	if s.static {
		return "static-" + s.medium.name
	}
	return "dynamic-" + s.medium.name
}

// round lets a claim come and go, with two clients one after the other, on nodes chosen at random.
func (s *soaker) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*soakWithin)
	defer cancel()
	name := fmt.Sprintf("%s-%d", s.name(), s.rounds.Load()+1)
	s.doing.Store("claiming")
	if s.static {
		if err := s.offer(ctx); err != nil {
			return err
		}
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := createText(ctx, s.storage.namespace, s.claim(name), claim); err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) error { return wantBound(ctx, claim) }); err != nil {
		return err
	}
	for i := range 2 {
		s.doing.Store(fmt.Sprintf("client %d", i+1))
		first := i == 0 && (!s.static || s.fresh)
		if err := s.use(ctx, fmt.Sprintf("%s-client%d", name, i+1), name, first); err != nil {
			return err
		}
		s.fresh = false
	}
	s.doing.Store("deleting")
	volume := &corev1.PersistentVolume{}
	if err := kube.Get(ctx, client.ObjectKey{Name: s.volume(claim)}, volume); err != nil {
		return err
	}
	if err := deleteAndWait(ctx, claim); err != nil {
		return err
	}
	if s.static { // is kept, with what is in it
		return deleteAndWait(ctx, volume)
	}
	if err := poll(ctx, func(ctx context.Context) error { return gone(ctx, volume) }); err != nil {
		return err
	}
	return s.noData(volume.Name)
}

// volume returns the name of a claim's PersistentVolume.
func (s *soaker) volume(claim *corev1.PersistentVolumeClaim) string {
	if s.static {
		return s.name()
	}
	return volumeName(claim)
}

// noData objects where the storage of a volume that is deleted is there.
func (s *soaker) noData(volume string) error {
	left, err := filepath.Glob(filepath.Join(s.storage.directory, "data", volume+"*"))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("volume %s is deleted, and there is %v", volume, left)
	}
	return err
}

func (s *soaker) claim(name string) string {
	yaml := strings.Replace(claim(name, s.class(), "ReadWriteOnce"), "spec:\n", "spec:\n  volumeMode: "+string(s.medium.mode())+"\n", 1)
	if s.static {
		yaml += "  volumeName: " + s.name() + "\n"
	}
	return yaml
}

func (s *soaker) class() string {
	if s.static {
		return ""
	}
	return s.storage.name
}

// offer makes the static PersistentVolume.
func (s *soaker) offer(ctx context.Context) error {
	return createText(ctx, "", fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata:
  name: %s
spec:
  storageClassName: ""
  volumeMode: %s
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: %s, volumeHandle: %[1]s}
`, s.name(), s.medium.mode(), s.storage.name), &corev1.PersistentVolume{})
}

// soakScript reads what is in two places of a volume, one of which must be whole unless this is the first client, and
// writes both again. It ends with 7 where the volume is not as it was written. $1 is where, and $2 says that it is first.
const soakScript = `
place() { dd if="$1" bs=65536 skip=$2 count=1 2>/dev/null; }
whole() { [ "$(place $1 $2 | head -c 65472 | sha256sum | cut -c1-64)" = "$(place $1 $2 | tail -c 64)" ]; }
if ! [ -b "$1" ] && ! grep -q ' /data ' /proc/mounts; then echo "nothing is mounted" > /dev/termination-log; exit 7; fi
if [ $2 = false ] && ! whole $1 0 && ! whole $1 1; then echo "what was written is lost" > /dev/termination-log; exit 7; fi
for i in 0 1; do
  head -c 65472 /dev/urandom > /scratch/new
  sha256sum /scratch/new | cut -c1-64 | tr -d '\n' >> /scratch/new
  dd if=/scratch/new of="$1" bs=65536 seek=$i conv=notrunc,fsync
done
`

// use lets a client write to a volume and end, and takes it away.
func (s *soaker) use(ctx context.Context, name, claim string, first bool) error {
	path, volume := "/data/file", "volumeMounts: [{name: data, mountPath: /data}, {name: scratch, mountPath: /scratch}]"
	if s.medium.mode() == corev1.PersistentVolumeBlock {
		path, volume = "/dev/data", "volumeDevices: [{name: data, devicePath: /dev/data}]\n      volumeMounts: [{name: scratch, mountPath: /scratch}]"
	}
	pod := &corev1.Pod{}
	if err := createText(ctx, s.storage.namespace, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  nodeSelector: {%s}
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: busybox:1.37.0
      command: [bash, -euc]
      args: [%q, soak, %s, "%t"]
      %s
  volumes:
    - {name: scratch, emptyDir: {}}
    - name: data
      persistentVolumeClaim: {claimName: %s}
`, name, selector(nodes[s.random.IntN(len(nodes))]), soakScript, path, first, volume, claim), pod); err != nil {
		return err
	}
	if s.random.IntN(6) > 0 || first { // Else it goes while it starts.
		if err := poll(ctx, func(ctx context.Context) error {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodSucceeded && misread(pod) == nil {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := misread(pod); err != nil {
			return err
		}
	}
	return deleteAndWait(ctx, pod)
}

// misread returns what a client found wrong with its volume.
func misread(pod *corev1.Pod) error {
	var errs []error
	for _, status := range pod.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			if ended := state.Terminated; ended != nil && ended.ExitCode == 7 {
				errs = append(errs, fmt.Errorf("pod %s on %s: %s", pod.Name, pod.Spec.NodeName, ended.Message))
			}
		}
	}
	return errors.Join(errs...)
}
