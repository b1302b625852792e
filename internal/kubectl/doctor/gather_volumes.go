package doctor

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func (g *gatherer) workflowPods(ctx context.Context) error {
	list := &corev1.PodList{}
	return g.list(ctx, listPods, list, func() { g.Pods = append(g.Pods, list.Items...) }, client.HasLabels{pavv1.WorkflowLabel})
}

func (g *gatherer) stages(ctx context.Context) error {
	list := &pavv1.PavStageList{}
	return g.list(ctx, listStages, list, func() { g.Stages = append(g.Stages, list.Items...) })
}

func (g *gatherer) snapshots(ctx context.Context) error {
	list := &pavv1.PavSnapshotList{}
	return g.list(ctx, listSnapshots, list, func() { g.Snapshots = append(g.Snapshots, list.Items...) })
}

func (g *gatherer) buckets(ctx context.Context) error {
	list := &pavv1.PavBucketList{}
	return g.list(ctx, listBuckets, list, func() { g.Buckets = append(g.Buckets, list.Items...) })
}

func (g *gatherer) accesses(ctx context.Context) error {
	list := &pavv1.PavBucketAccessList{}
	return g.list(ctx, listAccesses, list, func() { g.Accesses = append(g.Accesses, list.Items...) })
}

// bucketAPIs reads which kinds of claims of buckets the cluster has, and whether there is a place for credentials.
func (g *gatherer) bucketAPIs(ctx context.Context) error {
	g.BucketAPIs = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(bucketAPIs)) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		found, err := g.get(ctx, getDefinitions, client.ObjectKey{Name: name}, definition)
		if err != nil {
			return err
		}
		if found {
			g.BucketAPIs[name] = slices.ContainsFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return v.Served && slices.Contains(bucketAPIs[name], v.Name)
			})
		}
	}
	var err error
	g.Credentials, err = g.get(ctx, listNamespaces, client.ObjectKey{Name: pavv1.CredentialsNamespace}, &corev1.Namespace{})
	return err
}

func (g *gatherer) volumes(ctx context.Context) error {
	list := &pavv1.PavVolumeList{}
	return g.list(ctx, listVolumes, list, func() { g.Volumes = append(g.Volumes, list.Items...) })
}

func (g *gatherer) provisioners(ctx context.Context) error {
	list := &pavv1.PavProvisionerList{}
	return g.list(ctx, listProvisioner, list, func() { g.Provisioners = append(g.Provisioners, list.Items...) })
}

// persistentVolumes reads the metadata of all PersistentVolumes.
func (g *gatherer) persistentVolumes(ctx context.Context) error {
	g.PVs = map[string]*metav1.PartialObjectMetadata{}
	list := metadataOf("PersistentVolumeList")
	return g.list(ctx, listPVs, list, func() {
		for i := range list.Items {
			g.PVs[list.Items[i].Name] = list.Items[i].DeepCopy()
		}
	})
}

// claims reads which claims exist.
func (g *gatherer) claims(ctx context.Context) error {
	g.Claims = map[types.UID]bool{}
	list := metadataOf("PersistentVolumeClaimList")
	return g.list(ctx, listClaims, list, func() {
		for i := range list.Items {
			g.Claims[list.Items[i].UID] = true
		}
	})
}

// metadataOf returns a list of the metadata of a core kind.
func metadataOf(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return list
}

func (g *gatherer) nodes(ctx context.Context) error {
	list := &corev1.NodeList{}
	return g.list(ctx, listNodes, list, func() { g.Nodes = append(g.Nodes, list.Items...) })
}

// drivers reads which drivers there are, and where they are registered.
func (g *gatherer) drivers(ctx context.Context) error {
	nodes, drivers := &storagev1.CSINodeList{}, &storagev1.CSIDriverList{}
	if err := g.list(ctx, listCSINodes, nodes, func() { g.CSINodes = append(g.CSINodes, nodes.Items...) }); err != nil {
		return err
	}
	return g.list(ctx, listCSIDrivers, drivers, func() { g.CSIDrivers = append(g.CSIDrivers, drivers.Items...) })
}
