package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/reference"
	"github.com/albertofaria/pav/test/reference/chainsaw"
)

// The end-to-end test of COSI v0.2.2 passes unchanged, with the values that come with it but for the name of the driver, which has dots: those of
// PavProvisioners have none. As there are no nodes, pods are played: PaV's, and that of the Job in which the test validates a Secret.
func TestCOSI_UpstreamsEndToEndTest(t *testing.T) {
	c, _ := withCOSI(t)
	const name = "sample-driver"
	values := map[string]any{}
	if err := yaml.Unmarshal(reference.COSI.Read(t, filepath.Join("test", "e2e", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	if theirs, ok := values["driverName"].(string); !ok || !strings.HasPrefix(theirs, name) {
		t.Fatalf("the driver is called %v", values["driverName"])
	}
	values["driverName"] = name
	ours, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	driver(t, c, name, ofBuckets, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.BucketValidation = &pavv1.BucketValidation{Protocols: []pavv1.BucketProtocol{pavv1.ProtocolS3, pavv1.ProtocolAzure}}
	})
	namespace := mustCreate(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chainsaw-"}}).Name
	standInForController(t, c)
	controllers(t, c, "job-controller,garbage-collector-controller")
	steps := playPods(t, c, namespace)
	runner := &chainsaw.Runner{Client: c.Admin, Namespace: namespace, Values: ours, Timeout: deadline, Before: steps.begin}
	runner.Run(t, reference.COSI.Read(t, filepath.Join("test", "e2e", "chainsaw-test.yaml")))
}

// standInForController makes the Deployment of COSI's controller, whose part PaV plays: the test looks for it.
func standInForController(t *testing.T, c *cluster) {
	t.Helper()
	const name, in = "container-object-storage-controller", "container-object-storage-system"
	if err := c.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": name}
	deployment := mustCreateHeld(t, c, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}},
		},
	})
	mustPatchStatus(t, c, deployment, func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1, 1, 1
	})
}

// stepTimes says how long the steps of a test took.
type stepTimes struct {
	t     *testing.T
	step  string
	since time.Time
}

func (s *stepTimes) begin(step string) {
	if s.step != "" {
		s.t.Logf("%-60s %s", s.step, time.Since(s.since).Round(time.Millisecond))
	}
	s.step, s.since = step, time.Now()
}

// playPods plays scheduler, kubelet and node agent for all pods of PaV, and for those of a namespace, until the end of the test.
func playPods(t *testing.T, c *cluster, namespace string) *stepTimes {
	t.Helper()
	validator := reference.Validator.File(t)
	agentOfNode := nodeAgent(t, c, fakeNode)
	ctx, cancel := context.WithCancel(lasting(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) { // until it is cancelled
			pods := &corev1.PodList{}
			if err := c.Admin.List(ctx, pods); err != nil && ctx.Err() == nil {
				t.Errorf("listing pods: %v", err)
			}
			for i := range pods.Items {
				pod := &pods.Items[i]
				if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" {
					continue
				}
				if err := play(ctx, t, c, agentOfNode, pod, validator); err != nil {
					t.Errorf("playing pod %s/%s: %v", pod.Namespace, pod.Name, err)
				}
			}
			return false, nil
		})
	}()
	t.Cleanup(func() {
		eventually(t, "the pods of "+namespace+" are gone", func(ctx context.Context) (bool, string) {
			pods := &corev1.PodList{}
			err := c.Admin.List(ctx, pods, client.InNamespace(namespace))
			return err == nil && len(pods.Items) == 0, errorText(err)
		})
		cancel()
		<-done
	})
	return &stepTimes{t: t}
}

// play takes a pod to its end.
func play(ctx context.Context, t *testing.T, c *cluster, agentOfNode client.Client, pod *corev1.Pod, validator string) error {
	t.Helper()
	if pod.Labels[batchv1.JobNameLabel] != "" {
		return endContainers(ctx, c.Admin, pod, validate(ctx, t, c, pod, validator))
	}
	result := workflow.Result{}
	switch pod.Labels[pavv1.WorkflowLabel] {
	case pavv1.WorkflowBucketCreation:
		result.Created = true
	case pavv1.WorkflowGrant:
		account, _, _ := strings.Cut(pod.Annotations["sees"], " ")
		var err error
		if result, err = sealed(pod, account, "secret of "+account); err != nil {
			return err
		}
	}
	return endPod(ctx, c.Admin, agentOfNode, pod, result, 0)
}

// validate does what the pod of COSI's test does: it checks a file of a Secret by a schema in a ConfigMap. Its script installs a program
// from the network for that, which a program of the same command line stands for. It returns the exit code.
func validate(ctx context.Context, t *testing.T, c *cluster, pod *corev1.Pod, validator string) int32 {
	t.Helper()
	root := t.TempDir()
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if err := writeVolume(ctx, c, pod.Namespace, pod.Spec.Volumes[at], filepath.Join(root, mount.MountPath)); err != nil {
			t.Errorf("volume %s: %v", mount.Name, err)
			return 1
		}
	}
	script, err := os.ReadFile(filepath.Join(root, "validation", "validator.sh"))
	const command = "check-jsonschema --schemafile /validation/schema.json /conf/BucketInfo"
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(script)), command) {
		t.Errorf("the script runs another command: %v\n%s", err, script)
		return 1
	}
	output, err := exec.CommandContext(ctx, validator, "--schemafile", filepath.Join(root, "validation", "schema.json"), filepath.Join(root, "conf", "BucketInfo")).CombinedOutput()
	if err != nil {
		t.Errorf("the Secret is not valid: %v\n%s", err, output)
		return 1
	}
	return 0
}

// writeVolume writes the files of a volume, as kubelet does.
func writeVolume(ctx context.Context, c *cluster, namespace string, volume corev1.Volume, directory string) error {
	files := map[string][]byte{}
	switch {
	case volume.ConfigMap != nil:
		source := &corev1.ConfigMap{}
		if err := c.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.ConfigMap.Name}, source); err != nil {
			return err
		}
		for key, text := range source.Data {
			files[key] = []byte(text)
		}
	case volume.Secret != nil:
		source := &corev1.Secret{}
		if err := c.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.Secret.SecretName}, source); err != nil {
			return err
		}
		for _, item := range volume.Secret.Items {
			files[item.Path] = source.Data[item.Key]
		}
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
