package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/scrape"
)

// namespace is the namespace of all claims and pods.
const namespace = "pav-bench"

// world is a cluster with PaV, and everything that a measurement has created in it.
type world struct {
	kube    client.WithWatch
	node    string
	scraper *scrape.Scraper
	undo    []func(context.Context) error // they remove what was created, in the order of creation
}

func newWorld(ctx context.Context, node string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	config.QPS = -1 // A rate limit of the client would count as PaV's time.
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	w := &world{node: node}
	if w.kube, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if w.scraper, err = scrape.New(ctx, w.kube); err != nil {
		return nil, err
	}
	w.undo = append(w.undo, w.scraper.Close)
	return w, w.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}})
}

// close removes everything that was created, the newest first.
func (w *world) close(ctx context.Context) error {
	return w.remove(ctx, len(w.undo))
}

// remove removes the last count things that were created, the newest first, and waits until they are gone.
func (w *world) remove(ctx context.Context, count int) error {
	var errs []error
	for ; count > 0; count-- {
		last := len(w.undo) - 1
		errs = append(errs, w.undo[last](ctx))
		w.undo = w.undo[:last]
	}
	return errors.Join(errs...)
}

// create creates an object that is deleted when the world is closed.
func (w *world) create(ctx context.Context, object client.Object) error {
	if err := w.kube.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %q: %w", object, object.GetName(), err)
	}
	w.undo = append(w.undo, func(ctx context.Context) error {
		if err := w.kube.Delete(ctx, object, client.GracePeriodSeconds(0)); err != nil {
			return client.IgnoreNotFound(err)
		}
		return w.wait(ctx, object, "gone", func(event watch.EventType) bool { return event == watch.Deleted })
	})
	return nil
}

// apply creates the objects of a YAML text. Pods and claims are created in the namespace of the world.
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
	switch object.GetKind() {
	case "Pod", "PersistentVolumeClaim":
		object.SetNamespace(namespace)
	}
	return object, nil
}

// wait waits until done returns true for an event of the object. Before each call, object is set to its current state.
// An object that does not exist counts as deleted.
func (w *world) wait(ctx context.Context, object client.Object, what string, done func(event watch.EventType) bool) error {
	key := client.ObjectKeyFromObject(object)
	list := &unstructured.UnstructuredList{}
	kinds, _, err := w.kube.Scheme().ObjectKinds(object)
	if err != nil {
		return err
	}
	list.SetGroupVersionKind(kinds[0])
	for {
		err := w.kube.Get(ctx, key, object)
		switch {
		case apierrors.IsNotFound(err) && done(watch.Deleted):
			return nil
		case err != nil:
			return fmt.Errorf("waiting for %T %s to be %s: %w", object, key, what, err)
		case done(watch.Modified):
			return nil
		}
		over, err := w.follow(ctx, object, list, done)
		if err != nil {
			return fmt.Errorf("waiting for %T %s to be %s: %w", object, key, what, err)
		}
		if over {
			return nil
		}
	}
}

// follow watches the object until done returns true, or the watch ends.
func (w *world) follow(ctx context.Context, object client.Object, list *unstructured.UnstructuredList, done func(event watch.EventType) bool) (bool, error) {
	events, err := w.kube.Watch(ctx, list, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{"metadata.name": object.GetName()},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: object.GetResourceVersion()}})
	if err != nil {
		return false, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		changed, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			break // The version is too old: the object is read again.
		}
		if err := assign(object, changed); err != nil {
			return false, err
		}
		if done(event.Type) {
			return true, nil
		}
	}
	return false, ctx.Err()
}

func assign(object client.Object, changed *unstructured.Unstructured) error {
	if same, ok := object.(*unstructured.Unstructured); ok {
		same.Object = changed.Object
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(changed.Object, object)
}

// running creates a pod and waits until it runs. It returns the time from began until then.
func (w *world) running(ctx context.Context, pod *corev1.Pod, began time.Time) (time.Duration, error) {
	if err := w.create(ctx, pod); err != nil {
		return 0, err
	}
	var took time.Duration
	err := w.wait(ctx, pod, "running", func(watch.EventType) bool {
		took = time.Since(began)
		return pod.Status.Phase == corev1.PodRunning
	})
	return took, err
}

// eventually waits until the condition returns no error. It is for conditions that one watch of an object cannot check.
func eventually(ctx context.Context, within time.Duration, what string, condition func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, within, err)
		case <-ticker.C:
		}
	}
}

// kubectl runs kubectl and returns its standard output.
func kubectl(ctx context.Context, args ...string) ([]byte, error) {
	var stderr strings.Builder
	command := exec.CommandContext(ctx, "kubectl", args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// inPod runs a shell command in a pod of the world and returns its standard output. It uses bash, as the shell of
// busybox prefers the programs of busybox, whatever the PATH.
func inPod(ctx context.Context, pod, command string) ([]byte, error) {
	return kubectl(ctx, "exec", "-n", namespace, pod, "--", "bash", "-c", command)
}
