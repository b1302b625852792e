package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// The provisioners of buckets, whose classes have the same names.
const (
	pavBuckets     = "bench-buckets"
	libraryBuckets = "bench-library"
)

// What the case uses of the repository, where the program runs.
const (
	gatewayManifest  = "examples/2-object-store/server.yaml"
	bucketDefinition = "examples/9-buckets/provisioner.yaml"
	bucketFunctions  = "test/objectstore/s3.sh"
	libraryProgram   = "bin/lib-bucket-provisioner"
)

// gatewayAdmin are the credentials of the administrator of the server in gatewayManifest.
var gatewayAdmin = map[string]string{"AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "open-sesame"}

// bucketCase measures claims of buckets of one S3 server. PaV's time without that of its pods is what it adds to them; the library has no
// pods.
func bucketCase() benchCase {
	return benchCase{
		name: "bucket", title: "ObjectBucketClaim until Bound, with a bucket and an account of an S3 server", warm: true,
		figures: []figure{{"claim is bound", "s"}, {"pods, from their creation until their containers have ended", "s"}, {"claim is bound, without the time of its pods", "s"}},
		subjects: []subject{
			{"two pods that run true, one after the other", floor, twoPods},
			{nameLibrary, peer, boundByLibrary},
			{"PaV, creation and grant pods", product, boundByPaV},
		},
		prepare: func(ctx context.Context, w *world) error { return w.serveBuckets(ctx) },
		notes: func(context.Context, *world) (string, error) {
			return "Both make bucket and account with the functions of " + bucketFunctions + ", in versitygw v1.8.0: PaV in two pods, and the process around " +
				"lib-bucket-provisioner v0.0.0-20221122204822-d1a8c34382f1 by itself, in the network of the control plane.", nil
		},
	}
}

// twoPods measures from the creation of a pod until it has succeeded, and then the same again.
func twoPods(ctx context.Context, w *world) ([]float64, error) {
	var whole, containers time.Duration
	for range 2 {
		pod := w.endingPod()
		took, err := w.watch.observe(ctx, func() error { return w.create(ctx, pod) }, succeeded(pod), exists(only(pod)), containersEnded(only(pod)))
		if err != nil {
			return nil, err
		}
		whole, containers = whole+took[0], containers+took[2]-took[1]
	}
	return []float64{whole.Seconds(), containers.Seconds(), math.NaN()}, nil
}

func boundByLibrary(ctx context.Context, w *world) ([]float64, error) {
	took, err := w.boundBucket(ctx, libraryBuckets)
	if err != nil {
		return nil, err
	}
	return []float64{took[0].Seconds(), math.NaN(), took[0].Seconds()}, nil
}

func boundByPaV(ctx context.Context, w *world) ([]float64, error) {
	creation, grant := ofWorkflow(pavBuckets, pavv1.WorkflowBucketCreation), ofWorkflow(pavBuckets, pavv1.WorkflowGrant)
	took, err := w.boundBucket(ctx, pavBuckets, exists(creation), containersEnded(creation), exists(grant), containersEnded(grant))
	if err != nil {
		return nil, err
	}
	pods := took[2] - took[1] + took[4] - took[3]
	return seconds([]time.Duration{took[0], pods, took[0] - pods}), nil
}

// boundBucket measures from the creation of a claim of a class until it is bound, and until other conditions are met.
func (w *world) boundBucket(ctx context.Context, class string, others ...condition) ([]time.Duration, error) {
	claim := &obcv1.ObjectBucketClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.named("bucket")},
		Spec:       obcv1.ObjectBucketClaimSpec{StorageClassName: class, GenerateBucketName: "bench"},
	}
	return w.watch.observe(ctx, func() error { return w.create(ctx, claim) }, append([]condition{bucketBound(claim)}, others...)...)
}

// serveBuckets enables buckets in the cluster for good, and starts a server and both provisioners.
func (w *world) serveBuckets(ctx context.Context) error {
	for _, step := range [][]string{
		{w.cluster, "load", "bin/versitygw.tar"},
		{w.cluster, "load", "bin/s3-tools.tar"},
		{"kubectl", "create", "-f", "deployment-buckets.yaml"},
		{"kubectl", "apply", "-R", "-f", "deploy/foreign"},
		{"kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=5m"},
	} {
		if _, err := command(ctx, step[0], step[1:]...); err != nil {
			return err
		}
	}
	lasting := w.lasting(ctx)
	claims, err := w.getter(obcv1.GroupVersion.WithKind("ObjectBucketClaim"))
	if err != nil {
		return err
	}
	if err := w.watch.watch(lasting, claims, "objectbucketclaims", &obcv1.ObjectBucketClaim{}).await(ctx); err != nil {
		return err
	}
	endpoint, err := w.startGateway(ctx)
	if err != nil {
		return err
	}
	admin := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: pavBuckets}, StringData: gatewayAdmin}
	if err := w.create(ctx, admin); err != nil {
		return err
	}
	definition, err := os.ReadFile(bucketDefinition)
	if err != nil {
		return fmt.Errorf("reading the definition of the example: %w", err)
	}
	if err := w.apply(ctx, strings.ReplaceAll(string(definition), "name: buckets", "name: "+pavBuckets)); err != nil {
		return err
	}
	for _, name := range []string{pavBuckets, libraryBuckets} {
		class := storageClass(name, name, immediate)
		class.Parameters = map[string]string{"endpoint": endpoint}
		if err := w.create(ctx, class); err != nil {
			return err
		}
	}
	return w.startLibrary(ctx)
}

// startGateway starts the server of the example on the node of the control plane, and returns its URL.
func (w *world) startGateway(ctx context.Context) (string, error) {
	manifest, err := os.ReadFile(gatewayManifest)
	if err != nil {
		return "", fmt.Errorf("reading the server of the example: %w", err)
	}
	pod, service := &corev1.Pod{}, &corev1.Service{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		object, err := decode(document)
		if err != nil {
			return "", err
		}
		object.SetNamespace(namespace)
		if fields, ok := object.(*unstructured.Unstructured); ok && fields.GetKind() == "Pod" {
			if err := unstructured.SetNestedField(fields.Object, controllers, "spec", "nodeSelector", corev1.LabelHostname); err != nil {
				return "", fmt.Errorf("placing the server: %w", err)
			}
		}
		if err := w.create(ctx, object); err != nil {
			return "", err
		}
	}
	key := client.ObjectKey{Namespace: namespace, Name: "s3"}
	if err := eventually(ctx, "the S3 server is ready", func(ctx context.Context) error {
		if err := w.kube.Get(ctx, key, pod); err != nil {
			return err
		}
		if !ready(pod) {
			return errors.New("it is not")
		}
		return nil
	}); err != nil {
		return "", err
	}
	if err := w.kube.Get(ctx, key, service); err != nil {
		return "", fmt.Errorf("reading the service of the server: %w", err)
	}
	return fmt.Sprintf("http://%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port), nil
}

// startLibrary starts the process around lib-bucket-provisioner. It ends when what was created is removed, and not before.
func (w *world) startLibrary(ctx context.Context) error {
	var output bytes.Buffer
	until, stop := context.WithCancel(context.WithoutCancel(ctx))
	process := exec.CommandContext(until, libraryProgram, "-kubeconfig", os.Getenv("KUBECONFIG"), "-name", libraryBuckets, "-functions", bucketFunctions)
	process.Env = os.Environ()
	for name, value := range gatewayAdmin {
		process.Env = append(process.Env, name+"="+value)
	}
	process.Stdout, process.Stderr = &output, &output
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = time.Minute
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		stop()
		return fmt.Errorf("starting %s: %w", libraryProgram, err)
	}
	w.undo = append(w.undo, func(context.Context) error {
		stop()
		if err := process.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w:\n%s", libraryProgram, err, output.String())
		}
		return nil
	})
	return nil
}
