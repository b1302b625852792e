package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/protocol"
)

// sourceKinds are the values of --source.
var sourceKinds = []string{protocol.KindSnapshot, protocol.KindClaim}

// sourceName is the name of the source of --source.
const sourceName = "source"

// chooseSource takes the objects of what the claim names as its source, and makes up those that are missing.
func (o *options) chooseSource(g *given, p *pavv1.PavProvisioner, c *objects) error {
	if o.source != "" {
		if c.static {
			return errors.New("--source cannot be used with a static volume, which PaV does not create")
		}
		if sourceOf(c.claim) != nil {
			return fmt.Errorf("--source cannot be used with claim %q, which names a source", text(c.claim, "metadata", "name"))
		}
		ref := map[string]any{"kind": o.source, "name": sourceName}
		if o.source == protocol.KindSnapshot {
			ref["apiGroup"] = snapshotv1.GroupName
		}
		set(c.claim, ref, "spec", "dataSourceRef")
	}
	ref := sourceOf(c.claim)
	if ref == nil || c.static {
		return nil
	}
	storedSource(c.claim)
	if protocol.IsPopulators(ref) {
		c.notef("the source of the claim is of the kind %s: PaV leaves the claim to a volume populator, and provisions the populator's own claim, which names no source", ref.Kind)
		return nil
	}
	namespace := text(c.claim, "metadata", "namespace")
	if ref.Namespace != nil && *ref.Namespace != namespace {
		namespace = *ref.Namespace
		c.notef("the source is in the namespace %q: that takes the option --cross-namespace-sources of the controller agent, and a ReferenceGrant", namespace)
	}
	c.source = &podplan.ClaimSource{}
	if ref.Kind == protocol.KindSnapshot {
		return c.chooseSourceSnapshot(g, p.Name, namespace, ref.Name)
	}
	return c.chooseSourceClaim(g, p, namespace, ref.Name)
}

// sourceOf returns what a claim names as its source, or nil.
func sourceOf(claim map[string]any) *corev1.TypedObjectReference {
	typed := &corev1.PersistentVolumeClaim{}
	if _, err := convert(claim, typed); err != nil {
		return nil // reported when the claim is provisioned
	}
	return protocol.Source(typed)
}

// storedSource fills in dataSource and dataSourceRef of a claim, one from the other, as the API server does.
func storedSource(claim map[string]any) {
	spec, _ := claim["spec"].(map[string]any)
	for to, from := range map[string]string{"dataSource": "dataSourceRef", "dataSourceRef": "dataSource"} {
		if ref, ok := spec[from].(map[string]any); ok && text(ref, "namespace") == "" {
			set(claim, runtimeCopy(ref), "spec", to)
		}
	}
}

// find returns a copy of the first object for which wanted is true, with its namespace, or nil.
func (c *objects) find(what string, all []object, wanted func(map[string]any) bool) map[string]any {
	i := slices.IndexFunc(all, func(o object) bool { return wanted(o.Object) })
	if i < 0 {
		return nil
	}
	c.use(what, all[i].Name(), all[i])
	return runtimeCopy(all[i].Object)
}

// isNamed reports whether an object has a namespace, which is "default" if it is absent, and a name.
func isNamed(namespace, name string) func(map[string]any) bool {
	return func(plain map[string]any) bool {
		return text(plain, "metadata", "name") == name && cmp.Or(text(plain, "metadata", "namespace"), metav1.NamespaceDefault) == namespace
	}
}

// refersTo reports whether a field of an object refers to a namespace and a name.
func refersTo(plain map[string]any, field, namespace, name string) bool {
	return text(plain, "spec", field, "namespace") == namespace && text(plain, "spec", field, "name") == name
}

// chooseSourceSnapshot takes a VolumeSnapshot with its VolumeSnapshotContent and its record. It is ready to use, unless its status says
// otherwise.
func (c *objects) chooseSourceSnapshot(g *given, driver, namespace, name string) error {
	snapshot := c.find("source VolumeSnapshot", g.snapshots, isNamed(namespace, name))
	isGiven := snapshot != nil
	if !isGiven {
		snapshot = madeUpSnapshot(namespace, name, "claim")
	}
	content := c.find("VolumeSnapshotContent", g.snapshotContents, func(content map[string]any) bool {
		own := text(content, "metadata", "name")
		return own == text(snapshot, "status", "boundVolumeSnapshotContentName") || own == text(snapshot, "spec", "source", "volumeSnapshotContentName") ||
			refersTo(content, "volumeSnapshotRef", namespace, name)
	})
	set(snapshot, text(content, "spec", "volumeSnapshotRef", "uid"), "metadata", "uid")
	stored(snapshot, true)
	class := c.sourceClass(g, driver, cmp.Or(text(snapshot, "spec", "volumeSnapshotClassName"), text(content, "spec", "volumeSnapshotClassName")))
	if content == nil {
		content = contentOf(driver, snapshot, class, protocol.VolumeName(uid(protocol.KindClaim, namespace, text(snapshot, "spec", "source", "persistentVolumeClaimName"))))
	}
	set(content, text(snapshot, "metadata", "uid"), "spec", "volumeSnapshotRef", "uid")
	stored(content, false)
	set(snapshot, text(content, "metadata", "name"), "status", "boundVolumeSnapshotContentName")
	set(snapshot, true, "status", "readyToUse")

	s := c.source
	s.Snapshot, s.Content = &snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}
	if _, err := convert(snapshot, s.Snapshot); err != nil {
		return err
	}
	if _, err := convert(content, s.Content); err != nil {
		return err
	}
	if err := c.chooseSourceRecord(g, class); err != nil {
		return err
	}
	if !isGiven {
		c.notef("no VolumeSnapshot %q was given: it was made up, with the handle %q%s", namespace+"/"+name, s.Record.Status.Handle, c.sizeText(s.Record.Status.Size))
	}
	return nil
}

// sourceClass returns the VolumeSnapshotClass of the source snapshot, by name if one is named, or makes one up.
func (c *objects) sourceClass(g *given, driver, name string) map[string]any {
	class := c.find("VolumeSnapshotClass", g.snapshotClasses, func(class map[string]any) bool {
		return text(class, "driver") == driver && (name == "" || text(class, "metadata", "name") == name)
	})
	if class != nil {
		return class
	}
	if name != "" {
		c.notef("the VolumeSnapshotClass %q of the source was not given: the source has no params", name)
	}
	return madeUpSnapshotClass(driver)
}

// chooseSourceRecord takes the record of the source snapshot, or makes one up.
func (c *objects) chooseSourceRecord(g *given, class map[string]any) error {
	s := c.source
	name := protocol.SnapshotOf(s.Content)
	if record := c.find("PavSnapshot", g.pavSnapshots, func(record map[string]any) bool { return text(record, "metadata", "name") == name }); record != nil {
		s.Record = &pavv1.PavSnapshot{}
		_, err := convert(record, s.Record)
		return err
	}
	recorded, err := convert(class, &snapshotv1.VolumeSnapshotClass{})
	if err != nil {
		return err
	}
	s.Record = &pavv1.PavSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       pavv1.PavSnapshotSpec{Provisioner: s.Content.Spec.Driver, Objects: pavv1.SnapshotObjects{SnapshotClass: &recorded}},
		Status:     pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady, Handle: name, Size: s.Snapshot.Status.RestoreSize},
	}
	if handle := s.Content.Spec.Source.SnapshotHandle; handle != nil {
		s.Record.Status.Handle = *handle
	}
	if status := s.Content.Status; status != nil && status.SnapshotHandle != nil {
		s.Record.Status.Handle = *status.SnapshotHandle
	}
	if s.Record.Status.Size == nil {
		s.Record.Status.Size = c.requested()
	}
	return nil
}

// requested returns the capacity that the claim requests; nil if it requests none.
func (c *objects) requested() *resource.Quantity {
	bytes := storageOf(c.claim, "spec", "resources", "requests")
	if bytes == 0 {
		return nil
	}
	return resource.NewQuantity(bytes, resource.BinarySI)
}

func (c *objects) sizeText(size *resource.Quantity) string {
	if size == nil {
		return ""
	}
	return fmt.Sprintf(" and a capacity of %s", size)
}

// chooseSourceClaim takes a claim and its PersistentVolume. It is bound, unless its status says otherwise.
func (c *objects) chooseSourceClaim(g *given, p *pavv1.PavProvisioner, namespace, name string) error {
	claim := c.find("source claim", g.claims, isNamed(namespace, name))
	isGiven := claim != nil
	if !isGiven {
		claim = runtimeCopy(c.claim)
		claim["metadata"] = map[string]any{"name": name, "namespace": namespace}
		unstructured.RemoveNestedField(claim, "status")
		for _, field := range []string{"dataSource", "dataSourceRef"} {
			unstructured.RemoveNestedField(claim, "spec", field)
		}
	}
	volume := c.find("source PersistentVolume", g.volumes, func(volume map[string]any) bool { return isBoundTo(volume, claim) })
	set(claim, text(volume, "spec", "claimRef", "uid"), "metadata", "uid")
	phase := text(claim, "status", "phase")
	storedClaim(claim, text(c.class, "metadata", "name"), p.Name)
	if volume == nil {
		volume = c.madeUpSource(p, claim)
	}
	storedVolume(volume, claim)
	if phase == "" {
		claim = bound(claim, volume)
	}
	c.claims[namespace+"/"+name] = claim

	c.source.Claim, c.source.PV = &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if _, err := convert(claim, c.source.Claim); err != nil {
		return err
	}
	if _, err := convert(volume, c.source.PV); err != nil {
		return err
	}
	if !isGiven {
		c.notef("no claim %q was given: it was made up, with the handle %q%s", namespace+"/"+name, text(volume, "spec", "csi", "volumeHandle"), c.sizeText(c.requested()))
	}
	return nil
}

// isBoundTo reports whether a PersistentVolume is that of a claim.
func isBoundTo(volume, claim map[string]any) bool {
	named := text(claim, "spec", "volumeName")
	return named != "" && named == text(volume, "metadata", "name") ||
		refersTo(volume, "claimRef", cmp.Or(text(claim, "metadata", "namespace"), metav1.NamespaceDefault), text(claim, "metadata", "name"))
}

// madeUpSource returns the PersistentVolume that PaV writes for a source claim of the same StorageClass.
func (c *objects) madeUpSource(p *pavv1.PavProvisioner, claim map[string]any) map[string]any {
	name := protocol.VolumeName(types.UID(text(claim, "metadata", "uid")))
	volume := madeUpVolume(p, claim, name)
	volume["metadata"] = map[string]any{"name": cmp.Or(text(claim, "spec", "volumeName"), name)}
	class := &storagev1.StorageClass{}
	if _, err := convert(c.class, class); err != nil {
		return volume // reported when the claim is provisioned
	}
	if attributes, _, err := podplan.Parameters(class); err == nil && len(attributes) > 0 {
		given := map[string]any{}
		for key, value := range attributes {
			given[key] = value
		}
		set(volume, given, "spec", "csi", "volumeAttributes")
	}
	return volume
}

// isOfSource reports whether a PersistentVolume is that of a claim that another claim in the files names as its source.
func (g *given) isOfSource(volume map[string]any) bool {
	return slices.ContainsFunc(g.claims, func(named object) bool {
		return isBoundTo(volume, named.Object) && slices.ContainsFunc(g.claims, func(claim object) bool {
			ref := sourceOf(claim.Object)
			return ref != nil && ref.Kind == protocol.KindClaim && ref.Name == named.Name()
		})
	})
}

// recordSource fills in what the controller agent records of the source of the claim.
func (r *rendering) recordSource(claim *corev1.PersistentVolumeClaim) error {
	if r.source == nil {
		return nil
	}
	ref := protocol.Source(claim)
	kind := pavv1.DataSourceKind(ref.Kind)
	if !podplan.CanCreateFrom(r.provisioner.Spec.VolumeCreation, kind) {
		r.ledger.Spec.Source = &pavv1.DataSource{Kind: kind} // creation is refused
		return nil
	}
	message := podplan.CheckSourceKind(r.provisioner, claim)
	if problem := r.source.Problem(r.provisioner.Name, claim); message == "" && problem != nil {
		message = fmt.Sprintf("spec.dataSourceRef: %s %s", podplan.SourceName(claim), problem.Text)
	}
	if message != "" {
		return &podplan.Error{Err: errors.New("the claim's " + message)}
	}
	var err error
	if r.ledger.Spec.Source, err = r.source.Recorded(claim); err != nil {
		return err
	}
	labels, _, _ := unstructured.NestedStringMap(r.node, "metadata", "labels")
	if reachable := r.ledger.Spec.Source.AccessibleTopology; r.selected && len(reachable) > 0 && !topology.Matches(reachable, labels) {
		r.notef("the source can be reached from nodes with %s, and not from %q: PaV takes another node; name one with --node", topology.Describe(reachable), text(r.node, "metadata", "name"))
	}
	return nil
}

// validateSource checks the value of --source.
func (o *options) validateSource() error {
	if o.source != "" && !slices.Contains(sourceKinds, o.source) {
		return fmt.Errorf("--source %s: it is one of %s", o.source, strings.Join(sourceKinds, ", "))
	}
	return nil
}
