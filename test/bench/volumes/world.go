package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// namespace is the namespace of all claims and client pods.
const namespace = "pav-bench"

// stepTimeout is the timeout of everything that is waited for but not measured.
const stepTimeout = 20 * time.Minute

// world is a cluster with PaV and the peers, and what the benchmarks have created in it.
type world struct {
	kube    client.Client
	config  *rest.Config
	watch   *watcher
	server  string // the version of Kubernetes
	node    string // the node that all client pods run on
	cluster string // the program that runs the cluster
	undo    []func(context.Context) error
	names   int
}

// newWorld connects to the cluster of KUBECONFIG. The world watches the cluster until ctx ends.
func newWorld(ctx context.Context, node, cluster string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	config.QPS = -1 // A rate limit of this client would count as the time of what is measured.
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme), obcv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	w := &world{node: node, cluster: cluster, config: config}
	if w.kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := clientset.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for the version of Kubernetes: %w", err)
	}
	w.server = version.GitVersion
	snapshots, err := w.getter(snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot"))
	if err != nil {
		return nil, err
	}
	if w.watch, err = newWatcher(ctx, clientset, snapshots); err != nil {
		return nil, err
	}
	return w, w.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}})
}

// getter returns a client of the API of a kind, for watches.
func (w *world) getter(kind schema.GroupVersionKind) (cache.Getter, error) {
	httpClient, err := rest.HTTPClientFor(w.config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	found, err := apiutil.RESTClientForGVK(kind, false, false, w.config, serializer.NewCodecFactory(w.kube.Scheme()), httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", kind.Kind, err)
	}
	return found, nil
}

// lasting returns a context that ends when what was created since is removed.
func (w *world) lasting(ctx context.Context) context.Context {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.undo = append(w.undo, func(context.Context) error { stop(); return nil })
	return lasting
}

// named returns a name that no other object of the run has.
func (w *world) named(prefix string) string {
	w.names++
	return fmt.Sprintf("%s-%d", prefix, w.names)
}

// removeTo removes what was created since the world had this number of things to undo, the newest first.
func (w *world) removeTo(ctx context.Context, mark int) error {
	var errs []error
	for last := len(w.undo) - 1; last >= mark; last-- {
		errs = append(errs, w.undo[last](ctx))
		w.undo = w.undo[:last]
	}
	return errors.Join(errs...)
}

// create creates objects at once. They are deleted at once, too, and removal waits until they are gone.
func (w *world) create(ctx context.Context, objects ...client.Object) error {
	w.undo = append(w.undo, func(ctx context.Context) error { return w.remove(ctx, objects) })
	return w.createAll(ctx, objects)
}

// createAll creates objects at once, which something else removes.
func (w *world) createAll(ctx context.Context, objects []client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, object := range objects {
		group.Go(func() error {
			if err := w.kube.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T %q: %w", object, object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// delete deletes objects at once. It does not wait until they are gone.
func (w *world) delete(ctx context.Context, objects ...client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, object := range objects {
		group.Go(func() error { return client.IgnoreNotFound(w.kube.Delete(ctx, object)) })
	}
	return group.Wait()
}

func (w *world) remove(ctx context.Context, objects []client.Object) error {
	if err := w.delete(ctx, objects...); err != nil {
		return err
	}
	for _, object := range objects {
		err := eventually(ctx, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) error {
			copied, ok := object.DeepCopyObject().(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", object)
			}
			err := w.kube.Get(ctx, client.ObjectKeyFromObject(object), copied)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it exists"), err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// apply creates the objects of a YAML text, one after the other.
func (w *world) apply(ctx context.Context, text string) error {
	for document := range strings.SplitSeq(text, "\n---\n") {
		object, err := decode(document)
		if err != nil {
			return err
		}
		if err := w.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func decode(document string) (client.Object, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		return nil, fmt.Errorf("decoding YAML: %w", err)
	}
	return object, nil
}

// census has the numbers of objects that benchmarks leave behind for a while.
type census [7]int

// count counts pods, claims, PersistentVolumes, and PaV's records.
func (w *world) count(ctx context.Context) (census, error) {
	var found census
	for i, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{},
		&pavv1.PavVolumeList{}, &pavv1.PavStageList{}, &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{},
	} {
		if err := w.kube.List(ctx, list); err != nil {
			return found, fmt.Errorf("counting objects: %w", err)
		}
		found[i] = meta.LenList(list)
	}
	return found, nil
}

// quiet waits until there are no more objects than before: what was measured has no work left to do. There may be fewer,
// if something that was ending before has ended.
func (w *world) quiet(ctx context.Context, before census) error {
	return eventually(ctx, "nothing is left of a measurement", func(ctx context.Context) error {
		now, err := w.count(ctx)
		for i := range now {
			if err == nil && now[i] > before[i] {
				err = fmt.Errorf("there are %v pods, claims, PersistentVolumes, PavVolumes, PavStages, PavBuckets and PavBucketAccesses, and there were %v", now, before)
			}
		}
		return err
	})
}

// eventually waits until the condition returns no error. It is for what is not measured.
func eventually(ctx context.Context, what string, condition func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // What fails because ctx has ended says nothing.
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not before the timeout: %w", what, last)
		case <-ticker.C:
		}
	}
}

// command runs a command and returns its standard output.
func command(ctx context.Context, name string, args ...string) ([]byte, error) {
	var stderr strings.Builder
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// inPod runs a shell command in a pod and returns its standard output. It uses bash, as the shell of busybox prefers the
// programs of busybox, whatever the PATH.
func inPod(ctx context.Context, pod, script string) ([]byte, error) {
	return command(ctx, "kubectl", "exec", "-n", namespace, pod, "--", "bash", "-c", script)
}
