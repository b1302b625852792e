package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// What a user may not be allowed to read, as in Facts.Hidden.
const (
	hiddenClaims       = "claims"
	hiddenClasses      = "StorageClasses"
	hiddenProvisioners = "PavProvisioners"
	hiddenVolumes      = "PavVolumes"
	hiddenPVs          = "PersistentVolumes"
	hiddenStages       = "PavStages"
	hiddenPods         = "workflow pods"
	hiddenClients      = "pods"
	hiddenNodes        = "nodes"
	hiddenAgents       = "PaV's agents"
	hiddenEvents       = "events"
)

// gatherer reads objects. Once a kind is forbidden it is left out, and everything else is still read.
type gatherer struct {
	client.Reader
	*Facts
}

// Gather reads everything about a claim, a PersistentVolume, a snapshot or a bucket that the user may read. The error is one of the
// API server, or says that the object does not exist.
func Gather(ctx context.Context, reader client.Reader, ref Ref, now func() time.Time) (*Facts, error) {
	g := &gatherer{reader, &Facts{Subject: ref, Nodes: map[string]*Node{}}}
	steps := []func(context.Context) error{g.fromVolume, g.stages, g.snapshots, g.source, g.copies, g.definition, g.workflowPods, g.clients, g.nodes, g.events, g.gone}
	switch {
	case ref.Kind == Claim:
		steps[0] = g.fromClaim
	case ref.isSnapshot():
		steps = []func(context.Context) error{g.fromSnapshot, g.snapshotSource, g.copies, g.definition, g.workflowPods, g.nodes, g.events, g.gone}
	case ref.isBucket():
		steps = []func(context.Context) error{g.fromBucket, g.bucketObjects, g.definition, g.workflowPods, g.nodes, g.secretClients, g.events, g.gone}
	}
	for _, gather := range steps {
		if err := gather(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(g.Hidden)
	g.Now = now()
	return g.Facts, nil
}

// get reads an object. found is false if it does not exist, or the user may not read it.
func (g *gatherer) get(ctx context.Context, namespace, name, what string, object client.Object) (found bool, err error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 { // text of a tenant that no object can have as its name
		return false, nil
	}
	err = g.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || g.hide(what, err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting %s: %w", what, err)
	}
	return true, nil
}

// list reads a list, which stays empty if that is forbidden.
func (g *gatherer) list(ctx context.Context, list client.ObjectList, what string, options ...client.ListOption) (allowed bool, err error) {
	err = g.List(ctx, list, options...)
	if g.hide(what, err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("listing %s: %w", what, err)
	}
	return true, nil
}

// hide records what the user may not read, and reports whether an error says so.
func (g *gatherer) hide(what string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	if !g.hides(what) {
		g.Hidden = append(g.Hidden, what)
	}
	return true
}

func (g *gatherer) fromClaim(ctx context.Context) error {
	claim := &corev1.PersistentVolumeClaim{}
	found, err := g.get(ctx, g.Subject.Namespace, g.Subject.Name, hiddenClaims, claim)
	if err != nil {
		return err
	}
	if found {
		g.Claim = claim
		return g.volume(ctx, VolumeName(claim))
	}
	name, err := g.former(ctx)
	if err != nil {
		return err
	}
	return g.volume(ctx, name)
}

// former returns the name of the volume of a claim that is gone, or "".
func (g *gatherer) former(ctx context.Context) (string, error) {
	missing := fmt.Errorf("there is no claim %q in namespace %q", g.Subject.Name, g.Subject.Namespace)
	if g.hides(hiddenClaims) {
		return "", fmt.Errorf("you may not read claims in namespace %q", g.Subject.Namespace)
	}
	volume, err := FormerVolume(ctx, g, g.Subject)
	if g.hide(hiddenVolumes, err) || err == nil && volume == nil {
		return "", missing
	}
	if err != nil {
		return "", err
	}
	return volume.Name, nil
}

func (g *gatherer) fromVolume(ctx context.Context) error {
	if err := g.volume(ctx, g.Subject.Name); err != nil {
		return err
	}
	if g.PV == nil && g.Volume == nil {
		if g.hides(hiddenPVs) {
			return fmt.Errorf("you may not read PersistentVolumes; ask about the claim: kubectl pav describe pvc/NAME")
		}
		return fmt.Errorf("there is no PersistentVolume %q", g.Subject.Name)
	}
	namespace, name := g.claimRef()
	claim := &corev1.PersistentVolumeClaim{}
	found, err := g.get(ctx, namespace, name, hiddenClaims, claim)
	if found && (claim.Spec.VolumeName == g.volumeName() || VolumeName(claim) == g.volumeName()) {
		g.Claim = claim
	}
	return err
}

func (g *gatherer) volume(ctx context.Context, name string) error {
	pv, volume := &corev1.PersistentVolume{}, &pavv1.PavVolume{}
	found, err := g.get(ctx, "", name, hiddenPVs, pv)
	if err != nil {
		return err
	}
	if found {
		g.PV = pv
	}
	if found, err = g.get(ctx, "", name, hiddenVolumes, volume); found {
		g.Volume = volume
	}
	return err
}

func (g *gatherer) stages(ctx context.Context) error {
	name := g.volumeName()
	list := &pavv1.PavStageList{}
	if _, err := g.list(ctx, list, hiddenStages, client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(name)}); err != nil {
		return err
	}
	g.Stages = slices.DeleteFunc(list.Items, func(s pavv1.PavStage) bool { return s.Spec.VolumeName != name })
	slices.SortFunc(g.Stages, func(a, b pavv1.PavStage) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return nil
}

// definition reads the StorageClass and the PavProvisioner.
func (g *gatherer) definition(ctx context.Context) error {
	if g.Claim != nil && protocol.Unbound(g.Claim) && g.Snapshot == nil {
		if err := g.class(ctx); err != nil {
			return err
		}
	}
	provisioner := &pavv1.PavProvisioner{}
	found, err := g.get(ctx, "", g.provisionerName(), hiddenProvisioners, provisioner)
	if err != nil {
		return err
	}
	if found {
		g.Provisioner = provisioner
		return nil
	}
	driver := &storagev1.CSIDriver{}
	if found, err = g.get(ctx, "", g.provisionerName(), "CSIDrivers", driver); found {
		g.Driver = driver
	}
	if found || err != nil || g.provisionerName() == "" {
		return err
	}
	return g.similar(ctx)
}

// similar looks for a PavProvisioner whose name is like the one that does not exist.
func (g *gatherer) similar(ctx context.Context) error {
	list := &pavv1.PavProvisionerList{}
	if _, err := g.list(ctx, list, hiddenProvisioners); err != nil {
		return err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	g.Similar = definition.Nearest(g.provisionerName(), names)
	return nil
}

func (g *gatherer) class(ctx context.Context) error {
	class := &storagev1.StorageClass{}
	if name := protocol.ClassName(g.Claim); name != "" {
		found, err := g.get(ctx, "", name, hiddenClasses, class)
		if found {
			g.Class = class
		}
		return err
	}
	list := &storagev1.StorageClassList{}
	if _, err := g.list(ctx, list, hiddenClasses); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			g.DefaultClass = list.Items[i].Name
		}
	}
	return nil
}

// workflowPods reads the workflow pods in all namespaces. If the user may not list pods of all namespaces, it reads
// those in PaV's namespace, and those that the ledgers name.
func (g *gatherer) workflowPods(ctx context.Context) error {
	targets := g.targets()
	if len(targets) == 0 {
		return nil
	}
	has := func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(targets, func(t Target) bool { return t.Has(pod) })
	}
	selector := targets[0].Labels() // those of a bucket and of its accesses are the same
	list := &corev1.PodList{}
	allowed, err := g.list(ctx, list, hiddenPods, selector)
	if err != nil {
		return err
	}
	if !allowed {
		if allowed, err = g.list(ctx, list, hiddenPods, selector, client.InNamespace(workflow.DefaultNamespace)); err != nil {
			return err
		}
		if allowed {
			g.Hidden = slices.DeleteFunc(g.Hidden, func(what string) bool { return what == hiddenPods })
		}
	}
	g.Pods = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !has(&pod) })
	for _, ref := range g.recorded() {
		pod := &corev1.Pod{}
		if g.podNamed(ref.Namespace, ref.Name) != nil {
			continue
		}
		found, err := g.get(ctx, ref.Namespace, ref.Name, hiddenPods, pod)
		if err != nil {
			return err
		}
		if found && has(pod) {
			g.Pods = append(g.Pods, *pod)
		}
	}
	slices.SortFunc(g.Pods, byAge)
	return nil
}

func byAge(a, b corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(workflow.Attempt(&a), workflow.Attempt(&b)), cmp.Compare(a.Name, b.Name))
}

// recorded returns the pods that the ledgers name.
func (g *gatherer) recorded() []*pavv1.PodReference {
	var refs []*pavv1.PodReference
	add := func(pod *pavv1.PodReference, failures []*pavv1.WorkflowFailure) {
		refs = append(refs, pod)
		for _, failure := range failures {
			refs = append(refs, podOf(failure))
		}
	}
	if g.Volume != nil && g.Snapshot == nil {
		add(g.Volume.Status.Pod, g.Volume.Status.Failures())
	}
	for i := range g.Snapshots {
		add(g.Snapshots[i].Status.Pod, g.Snapshots[i].Status.Failures())
	}
	if g.Bucket != nil {
		if record := g.Bucket.Record; record != nil {
			add(record.Status.Pod, record.Status.Failures())
		}
		for i := range g.Bucket.Accesses {
			add(g.Bucket.Accesses[i].Status.Pod, g.Bucket.Accesses[i].Status.Failures())
		}
	}
	for i := range g.Stages {
		status := &g.Stages[i].Status
		refs = append(refs, status.ValidationPod, status.StagingPod, status.UnstagingPod, podOf(status.StagingFailure), podOf(status.UnstagingFailure))
		if e := status.Expansion; e != nil {
			refs = append(refs, e.Pod, podOf(e.Failure))
		}
	}
	return slices.DeleteFunc(refs, func(ref *pavv1.PodReference) bool { return ref == nil })
}

// podOf returns the failed pod of a failure, if there is one.
func podOf(failure *pavv1.WorkflowFailure) *pavv1.PodReference {
	if failure == nil || failure.PodName == "" {
		return nil
	}
	return &pavv1.PodReference{Namespace: failure.PodNamespace, Name: failure.PodName}
}

// clients reads the pods that use the claim. No selector can find them, so it lists all pods in the namespace.
func (g *gatherer) clients(ctx context.Context) error {
	namespace, name := g.claimRef()
	if name == "" {
		return nil
	}
	list := &corev1.PodList{}
	for {
		allowed, err := g.list(ctx, list, hiddenClients, client.InNamespace(namespace), client.Limit(page), client.Continue(list.Continue))
		if err != nil || !allowed {
			return err
		}
		for i := range list.Items {
			if protocol.Uses(&list.Items[i], name) {
				g.Clients = append(g.Clients, list.Items[i])
			}
		}
		if list.Continue == "" {
			slices.SortFunc(g.Clients, byAge)
			return nil
		}
	}
}
