package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// atOnce is how many objects are created at once.
const atOnce = 32

func nodeName(i int) string        { return fmt.Sprintf("node-%04d", i) }
func provisionerName(i int) string { return fmt.Sprintf("provisioner-%04d", i) }

// fill creates the nodes and provisioners, starts the agents, and creates the volumes with their stages.
func (c *cluster) fill(ctx context.Context, r *report) (err error) {
	s := c.settings
	if err := each(ctx, s.nodes, c.addNode); err != nil {
		return fmt.Errorf("creating nodes: %w", err)
	}
	if c.controller, err = startChild(ctx, controllerRole, c.agent, orders{}, c.limits...); err != nil {
		return err
	}
	if err := each(ctx, s.provisioners, c.addProvisioner); err != nil {
		return fmt.Errorf("creating provisioners: %w", err)
	}
	claims := make([]*corev1.PersistentVolumeClaim, s.volumes)
	names := make([]string, s.volumes)
	for i := range claims {
		claims[i] = c.nextClaim()
		names[i] = claims[i].Name
	}
	begin := time.Now()
	if err := each(ctx, len(claims), func(ctx context.Context, i int) error { return c.plane.Admin.Create(ctx, claims[i]) }); err != nil {
		return fmt.Errorf("creating claims: %w", err)
	}
	if _, err := c.whenBound(ctx, names); err != nil {
		return err
	}
	took := time.Since(begin)
	used, err := c.controller.usage()
	if err != nil {
		return err
	}
	r.linef("%d claims at once were bound after %.1f s: %.1f a second. The controller agent made %.1f requests for each.", s.volumes, took.Seconds(),
		float64(s.volumes)/took.Seconds(), float64(used.Requests)/float64(s.volumes))
	if err := each(ctx, len(claims), func(ctx context.Context, i int) error { return c.addStage(ctx, claims[i], i) }); err != nil {
		return fmt.Errorf("creating PavStages: %w", err)
	}
	if s.caches == 0 {
		return nil
	}
	begin = time.Now()
	if c.nodes, err = startChild(ctx, nodesRole, c.plane.Environment.Config, orders{Count: s.caches}); err != nil {
		return err
	}
	filled, err := c.nodes.usage() // It answers when its caches are filled.
	r.linef("The caches of %d node agents were filled after %.1f s, with %.2f MiB of answers for each.", s.caches, time.Since(begin).Seconds(),
		mebibytes(filled.Bytes)/float64(s.caches))
	return err
}

// each calls a function for all numbers below n.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// addNode creates a node on which all drivers are registered, as kubelet reports it.
func (c *cluster) addNode(ctx context.Context, i int) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{corev1.LabelHostname: nodeName(i)}}}
	if err := c.plane.Admin.Create(ctx, node); err != nil {
		return err
	}
	registered := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
	}}}}
	for p := range c.settings.provisioners {
		registered.Spec.Drivers = append(registered.Spec.Drivers, storagev1.CSINodeDriver{Name: provisionerName(p), NodeID: node.Name})
	}
	return c.plane.Admin.Create(ctx, registered)
}

// stagingScript is as long as that of a provisioner that does something.
const stagingScript = `mkdir -p /pav/volume
echo {{ (params.greeting ~ " from " ~ pvc.metadata.name ~ "!") | tobash }} > /pav/volume/greeting.txt
echo {{ node.metadata.name | tobash }} > /pav/volume/node.txt
touch /pav/ready`

// addProvisioner creates a provisioner whose volumes need no creation pod, and its class.
func (c *cluster) addProvisioner(ctx context.Context, i int) error {
	name := provisionerName(i)
	template := fmt.Sprintf(`{"spec": {"containers": [{"name": "stage", "image": "busybox:1.37.0", "command": ["sh", "-ec"], "args": [%q]}]}}`, stagingScript)
	provisioner := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pavv1.PavProvisionerSpec{
		ProvisioningModes: []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic},
		VolumeCreation:    &pavv1.VolumeCreation{Capacity: &apiextensionsv1.JSON{Raw: []byte(`"{{ requestedMinCapacity }}"`)}},
		VolumeStaging:     pavv1.VolumeStaging{PodTemplate: apiextensionsv1.JSON{Raw: []byte(template)}},
	}}
	if err := c.plane.Admin.Create(ctx, provisioner); err != nil {
		return err
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: name, Parameters: map[string]string{"greeting": "hello"}}
	return c.plane.Admin.Create(ctx, class)
}

// nextClaim returns a claim that does not exist yet. One after the other, all provisioners get one.
func (c *cluster) nextClaim() *corev1.PersistentVolumeClaim {
	name := fmt.Sprintf("claim-%05d", c.claims)
	class := provisionerName(c.claims % c.settings.provisioners)
	c.claims++
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// addStage creates the PavStage of a claim's volume on a node, as the node's agent does.
func (c *cluster) addStage(ctx context.Context, claim *corev1.PersistentVolumeClaim, i int) (err error) {
	if err := c.plane.Admin.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return err
	}
	volume := &corev1.PersistentVolume{}
	if err := c.plane.Admin.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return err
	}
	node := nodeName(i % c.settings.nodes)
	stage := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: podplan.StageName(volume, node), Finalizers: []string{pavv1.StageFinalizer}, Labels: map[string]string{
			pavv1.ProvisionerLabel: volume.Spec.CSI.Driver, pavv1.VolumeLabel: workflow.Hash(volume.Name), pavv1.NodeLabel: workflow.Hash(node),
		}},
		Spec: podplan.StageSpec(volume, claim, node),
	}
	stage.Spec.Scope = pavv1.StagingScopeNode
	for into, object := range map[*apiextensionsv1.JSON]client.Object{&stage.Spec.Volume: volume, &stage.Spec.Claim: claim} {
		if into.Raw, err = json.Marshal(object); err != nil {
			return err
		}
	}
	if err := c.plane.Admin.Create(ctx, stage); err != nil {
		return err
	}
	stage.Status.Phase = pavv1.StageStaged
	return c.plane.Admin.Status().Update(ctx, stage)
}
