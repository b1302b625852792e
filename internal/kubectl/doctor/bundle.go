package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/bundle"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/version"
	"github.com/albertofaria/pav/internal/workflow"
)

// writeBundle writes the file for a bug report.
func writeBundle(ctx context.Context, env *cli.Env, cluster *cli.Cluster, f *Facts, report *Report, name string) error {
	b, err := bundleOf(ctx, cluster, f, report)
	if err != nil {
		return err
	}
	if err := create(name, func(w io.Writer) error { return b.Write(ctx, w, f.Now) }); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(env.ErrOut, "%s is written; look through it before you share it\n", name); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// create creates a file that only its owner can read. It does not overwrite a file, and leaves none after an error.
func create(name string, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating the bundle: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	return write(file)
}

// versions is what the bundle says about versions.
type versions struct {
	*version.Result `json:",inline"`

	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// bundleOf returns what the bundle has.
func bundleOf(ctx context.Context, cluster *cli.Cluster, f *Facts, report *Report) (*bundle.Bundle, error) {
	b := &bundle.Bundle{Objects: objectsOf(f), Logs: logsOf(cluster, f)}
	unread := maps.Clone(f.Unread)
	events, err := eventsOf(ctx, cluster.Objects, f, unread)
	if err != nil {
		return nil, err
	}
	b.Objects = append(b.Objects, bundle.Objects{Name: "events", Kind: corev1.SchemeGroupVersion.WithKind("Event"), Items: pointers(events)})
	v := versions{Result: version.Compare(f.Version, f.Namespace, f.Agents)}
	if server, err := cluster.Kube.Discovery().ServerVersion(); err == nil {
		v.Kubernetes = server.GitVersion
	}
	b.Results = map[string]any{"doctor": report, "versions": v}
	b.Missing = slices.Sorted(maps.Values(unread))
	return b, nil
}

// objectsOf returns the objects of a bundle, without events.
func objectsOf(f *Facts) []bundle.Objects {
	deployments, daemonSets := []client.Object{}, []client.Object{}
	if f.Deployment != nil {
		deployments = append(deployments, f.Deployment)
	}
	if f.DaemonSet != nil {
		daemonSets = append(daemonSets, f.DaemonSet)
	}
	return []bundle.Objects{
		{Name: "pavprovisioners", Kind: pavv1.GroupVersion.WithKind("PavProvisioner"), Items: pointers(f.Provisioners)},
		{Name: "pavvolumes", Kind: pavv1.GroupVersion.WithKind("PavVolume"), Items: pointers(f.Volumes)},
		{Name: "pavstages", Kind: pavv1.GroupVersion.WithKind("PavStage"), Items: pointers(f.Stages)},
		{Name: "pavsnapshots", Kind: pavv1.GroupVersion.WithKind("PavSnapshot"), Items: pointers(f.Snapshots)},
		{Name: "pavbuckets", Kind: pavv1.GroupVersion.WithKind("PavBucket"), Items: pointers(f.Buckets)},
		{Name: "pavbucketaccesses", Kind: pavv1.GroupVersion.WithKind("PavBucketAccess"), Items: pointers(f.Accesses)},
		{Name: "workflow-pods", Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Items: pointers(f.Pods)},
		{Name: "csidrivers", Kind: storagev1.SchemeGroupVersion.WithKind("CSIDriver"), Items: pointers(f.CSIDrivers)},
		{Name: "csinodes", Kind: storagev1.SchemeGroupVersion.WithKind("CSINode"), Items: pointers(f.CSINodes)},
		{Name: "agent-deployment", Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Items: deployments, Agents: true},
		{Name: "agent-daemonset", Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Items: daemonSets, Agents: true},
		{Name: "agent-pods", Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Items: pointers(f.Agents), Agents: true},
	}
}

// pointers returns the items of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

// logsOf returns the logs of the agents: of each container, and of its previous run.
func logsOf(cluster *cli.Cluster, f *Facts) (logs []bundle.Log) {
	for i := range f.Agents {
		pod := &f.Agents[i]
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for suffix, previous := range map[string]bool{"": false, ".previous": true} {
				if previous && s.RestartCount == 0 {
					continue
				}
				request := cluster.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: s.Name, Previous: previous})
				logs = append(logs, bundle.Log{Name: pod.Name + "/" + s.Name + suffix, Open: request.Stream})
			}
		}
	}
	return logs
}

// eventsOf returns the events of the objects of a bundle, and all of PaV's own namespaces. It records which it may not read.
func eventsOf(ctx context.Context, reader client.Reader, f *Facts, unread map[right]string) ([]corev1.Event, error) {
	subjects := map[types.UID]bool{}
	own := map[string]bool{f.Namespace: true, workflow.DefaultNamespace: true}
	namespaces := []string{corev1.NamespaceDefault, f.Namespace, workflow.DefaultNamespace}
	for _, objects := range objectsOf(f) {
		for _, object := range objects.Items {
			subjects[object.GetUID()] = true
			if namespace := object.GetNamespace(); namespace != "" {
				namespaces = append(namespaces, namespace)
			}
		}
	}
	slices.Sort(namespaces)
	var events []corev1.Event
	g := &gatherer{reader, &Facts{Namespace: f.Namespace, Unread: unread}}
	for _, namespace := range slices.Compact(namespaces) {
		list := &corev1.EventList{}
		if err := g.list(ctx, right("list events in namespace "+namespace), list, func() {
			for i := range list.Items {
				if e := &list.Items[i]; own[namespace] || subjects[e.InvolvedObject.UID] {
					events = append(events, *e)
				}
			}
		}, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	return events, nil
}
