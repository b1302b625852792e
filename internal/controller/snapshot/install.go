package snapshot

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Installer registers a Reconciler as soon as the cluster has the definitions of snapshots, which are an add-on.
type Installer struct {
	// Client reads from the cache.
	Client client.Client

	// Snapshots is the reconciler.
	Snapshots *Reconciler

	// Claims is the reconciler of claims, which wait for snapshots, too.
	Claims interface{ WatchSnapshots() error }

	mgr       ctrl.Manager
	options   controller.Options
	installed bool
}

// Register adds the installer to the manager.
func (i *Installer) Register(mgr ctrl.Manager, options controller.Options) error {
	i.mgr, i.options = mgr, options
	i.Snapshots.prepare()
	return ctrl.NewControllerManagedBy(mgr).
		Named("snapshot-definitions").
		For(&apiextensionsv1.CustomResourceDefinition{}). // the cache has only the one of VolumeSnapshotContents
		WithOptions(controller.Options{RateLimiter: reconcile.Backoff()}).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "snapshot-definitions", "definition", nil)).
		Complete(i)
}

// Reconcile implements reconcile.Reconciler.
func (i *Installer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := i.Client.Get(ctx, request.NamespacedName, definition); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if i.installed || !isEstablished(definition) {
		return ctrl.Result{}, nil
	}
	if err := i.install(ctx); err != nil {
		return reconcile.Result(err)
	}
	i.installed = true
	ctrl.LoggerFrom(ctx).Info("the cluster has snapshots")
	return ctrl.Result{}, nil
}

// install registers the reconciler. The definitions are installed together, and those of the other kinds are waited for.
func (i *Installer) install(ctx context.Context) error {
	for _, kind := range []string{"VolumeSnapshotContent", "VolumeSnapshot", "VolumeSnapshotClass"} {
		gvk := snapshotv1.SchemeGroupVersion.WithKind(kind)
		if _, err := i.mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			return &reconcile.Later{After: time.Second}
		} else if err != nil {
			return fmt.Errorf("asking whether there are %ss: %w", kind, err)
		}
	}
	for _, index := range contentIndexes {
		if err := i.mgr.GetFieldIndexer().IndexField(ctx, &snapshotv1.VolumeSnapshotContent{}, index.name, index.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	if err := i.Claims.WatchSnapshots(); err != nil {
		return err
	}
	return i.Snapshots.Register(i.mgr, i.options)
}

func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range definition.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// The indexes of VolumeSnapshotContents.
const (
	contentsByRecord  = "volumesnapshotcontent.record"
	contentsByClass   = "volumesnapshotcontent.class"
	contentsByDriver  = "volumesnapshotcontent.driver"
	contentsByStorage = "volumesnapshotcontent.storage"
)

var contentIndexes = []struct {
	name    string
	extract client.IndexerFunc
}{
	{contentsByRecord, of(func(c *snapshotv1.VolumeSnapshotContent) string { return bucket(protocol.SnapshotOf(c)) })},
	{contentsByClass, of(func(c *snapshotv1.VolumeSnapshotContent) string {
		if c.Spec.VolumeSnapshotClassName == nil {
			return ""
		}
		return *c.Spec.VolumeSnapshotClassName
	})},
	{contentsByDriver, of(func(c *snapshotv1.VolumeSnapshotContent) string { return c.Spec.Driver })},
	{contentsByStorage, of(func(c *snapshotv1.VolumeSnapshotContent) string { return bucket(storageOfContent(c)) })},
}

func of(extract func(*snapshotv1.VolumeSnapshotContent) string) client.IndexerFunc {
	return func(object client.Object) []string {
		content, ok := object.(*snapshotv1.VolumeSnapshotContent)
		if !ok || extract(content) == "" {
			return nil
		}
		return []string{extract(content)}
	}
}

func bucket(value string) string {
	if value == "" {
		return ""
	}
	return reconcile.Bucket(value)
}

// storageOfContent returns the key of the snapshot that a VolumeSnapshotContent has, or "" if it has none yet.
func storageOfContent(content *snapshotv1.VolumeSnapshotContent) string {
	switch {
	case content.Spec.Source.SnapshotHandle != nil:
		return reconcile.Storage(content.Spec.Driver, *content.Spec.Source.SnapshotHandle)
	case content.Status != nil && content.Status.SnapshotHandle != nil:
		return reconcile.Storage(content.Spec.Driver, *content.Status.SnapshotHandle)
	default:
		return ""
	}
}
