package render

import (
	"context"
	"fmt"
	"os"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
)

// objects are the objects with which a definition is rendered, as an API server would return them.
type objects struct {
	// claim is nil if the definition has no volumes.
	claim, class, node map[string]any

	// attributesClass is the VolumeAttributesClass that the claim names, and newAttributesClass the one that it names later; nil if there
	// is none.
	attributesClass, newAttributesClass map[string]any

	// snapshot is a VolumeSnapshot of the claim, and snapshotClass its VolumeSnapshotClass; nil if the definition makes no snapshots.
	snapshot, snapshotClass map[string]any

	// bucketClaim is an ObjectBucketClaim, bucketClass its StorageClass, and namespace its Namespace; nil if the definition has no
	// buckets.
	bucketClaim, bucketClass, namespace map[string]any

	// source is what the claim names as its source; nil if the volume is created empty.
	source *podplan.ClaimSource

	// volume is nil if the volume is provisioned dynamically.
	volume map[string]any

	// static means that an administrator wrote the volume. selected means that the node was selected for the claim's
	// first consumer before the volume existed.
	static, selected bool

	// claims are all claims, for get_pvc, by namespace/name; lookUp, if it is not nil, is get_pvc instead.
	claims map[string]map[string]any
	lookUp template.GetPVC

	// used lists the objects that are used, and notes says which were made up.
	used, notes []string
}

// choose selects the objects for a definition, and makes up those that are missing.
func (o *options) choose(g *given, p *pavv1.PavProvisioner) (*objects, error) {
	c := &objects{claims: map[string]map[string]any{}}
	if rendersVolumes(p) {
		if err := o.chooseOfVolume(g, p, c); err != nil {
			return nil, err
		}
	}
	return c, c.chooseBucket(g, p)
}

// chooseOfVolume selects the objects of a volume.
func (o *options) chooseOfVolume(g *given, p *pavv1.PavProvisioner, c *objects) error {
	if err := o.chooseVolume(g, p, c); err != nil {
		return err
	}
	if err := c.chooseClass(g, p); err != nil {
		return err
	}
	c.chooseClaim(g, p)
	if err := o.chooseSource(g, p, c); err != nil {
		return err
	}
	c.chooseAttributes(g, p)
	c.chooseSnapshot(g, p)
	if c.static && c.volume == nil {
		c.volume = madeUpVolume(p, c.claim, o.handle)
		c.notef("no PersistentVolume was given: %q was made up, with the handle %q and no volumeAttributes", p.Name, text(c.volume, "spec", "csi", "volumeHandle"))
	}
	if c.volume != nil {
		storedVolume(c.volume, c.claim)
	}
	return o.chooseNode(g, c)
}

func (c *objects) notef(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *objects) use(what, name string, o object) {
	c.used = append(c.used, fmt.Sprintf("%s %s (%s)", what, name, o.where()))
}

// chooseVolume takes the first PersistentVolume of the definition's driver.
func (o *options) chooseVolume(g *given, p *pavv1.PavProvisioner, c *objects) error {
	c.static = !createsVolumes(p)
	for _, v := range g.volumes {
		if text(v.Object, "spec", "csi", "driver") != p.Name || o.pv == "" && g.isOfSource(v.Object) {
			continue
		}
		if c.volume != nil {
			c.notef("several PersistentVolumes are of %q: %q is used", p.Name, text(c.volume, "metadata", "name"))
			break
		}
		c.volume = runtimeCopy(v.Object)
		c.static = text(c.volume, "metadata", "annotations", protocol.ProvisionedBy) != p.Name
		c.use("PersistentVolume", v.Name(), v)
	}
	switch {
	case c.volume == nil && o.pv != "":
		return fmt.Errorf("no PersistentVolume in %s has the spec.csi.driver %q", o.pv, p.Name)
	case c.volume != nil && o.handle != "":
		return fmt.Errorf("--handle cannot be used with a PersistentVolume, which has a handle: %q", text(c.volume, "spec", "csi", "volumeHandle"))
	}
	return nil
}

// chooseClass takes the first StorageClass of the definition.
func (c *objects) chooseClass(g *given, p *pavv1.PavProvisioner) error {
	if c.static {
		return nil
	}
	for _, class := range g.classes {
		if text(class.Object, "provisioner") != p.Name {
			continue
		}
		if c.class != nil {
			c.notef("several StorageClasses are of %q: %q is used", p.Name, text(c.class, "metadata", "name"))
			break
		}
		c.class = runtimeCopy(class.Object)
		c.use("StorageClass", class.Name(), class)
	}
	if c.class == nil {
		if len(g.classes) > 0 {
			return fmt.Errorf("StorageClass %q (%s) has the provisioner %q, not %q", g.classes[0].Name(), g.classes[0].where(), text(g.classes[0].Object, "provisioner"), p.Name)
		}
		waits := usesSelectedNode(p)
		c.class = madeUpClass(p.Name, waits)
		words := ""
		if waits {
			words = " and the volumeBindingMode WaitForFirstConsumer"
		}
		c.notef("no StorageClass was given: %q was made up, with no parameters%s", p.Name, words)
	}
	storedClass(c.class)
	return nil
}

// chooseClaim takes the claim that the volume is bound to, or the first of the class, or the first one.
func (c *objects) chooseClaim(g *given, p *pavv1.PavProvisioner) {
	class := text(c.class, "metadata", "name")
	provisioner := p.Name
	if c.static {
		provisioner = ""
	}
	var chosen *object
	best := 0
	for i, claim := range g.claims {
		plain := runtimeCopy(claim.Object)
		storedClaim(plain, class, "")
		c.claims[text(plain, "metadata", "namespace")+"/"+claim.Name()] = plain
		if score := c.score(claim.Object, class); score > best {
			best, chosen = score, &g.claims[i]
		}
	}
	if chosen == nil {
		c.claim = madeUpClaim(p, class)
		if c.volume != nil {
			c.claim = claimOf(c.volume)
		}
		storedClaim(c.claim, class, provisioner)
		spec, _ := c.claim["spec"].(map[string]any)
		c.notef("no claim was given: %q in namespace %q was made up, for %s, %v, %s", text(c.claim, "metadata", "name"), text(c.claim, "metadata", "namespace"),
			text(c.claim, "spec", "resources", "requests", "storage"), spec["accessModes"], spec["volumeMode"])
	} else {
		c.claim = runtimeCopy(chosen.Object)
		storedClaim(c.claim, class, provisioner)
		c.use("claim", text(c.claim, "metadata", "namespace")+"/"+chosen.Name(), *chosen)
		if named := text(c.claim, "spec", "storageClassName"); !c.static && named != class {
			c.notef("the claim asks for the StorageClass %q; it is rendered with %q instead", named, class)
		}
	}
	c.claims[text(c.claim, "metadata", "namespace")+"/"+text(c.claim, "metadata", "name")] = c.claim
}

// chooseAttributes takes the VolumeAttributesClass that the claim names, and another one of the definition that it is to have later.
func (c *objects) chooseAttributes(g *given, p *pavv1.PavProvisioner) {
	named := text(c.claim, "spec", "volumeAttributesClassName")
	for _, class := range g.attributesClasses {
		switch {
		case text(class.Object, "driverName") != p.Name:
			continue
		case class.Name() == named:
			c.attributesClass = class.Object
		case c.newAttributesClass == nil:
			c.newAttributesClass = class.Object
		default:
			continue
		}
		c.use("VolumeAttributesClass", class.Name(), class)
	}
	if named != "" && c.attributesClass == nil {
		c.notef("the claim names the VolumeAttributesClass %q, which was not given: it is rendered without attributes", named)
	}
	if c.newAttributesClass == nil {
		c.newAttributesClass = c.attributesClass
	}
	if c.newAttributesClass == nil && p.Spec.VolumeModification != nil && !c.static {
		c.notef("no VolumeAttributesClass was given: the modification of the volume is not shown")
	}
}

// parameters returns those of a class.
func parameters(class map[string]any) map[string]string {
	found, _, _ := unstructured.NestedStringMap(class, "parameters")
	return found
}

// score returns how likely it is that the user means this claim, judged by its file.
func (c *objects) score(claim map[string]any, class string) int {
	namespace := text(claim, "metadata", "namespace")
	if namespace == "" {
		namespace = "default"
	}
	volume, named := text(claim, "spec", "volumeName"), text(claim, "spec", "storageClassName")
	switch {
	case c.volume != nil && text(claim, "metadata", "name") == text(c.volume, "spec", "claimRef", "name") && namespace == text(c.volume, "spec", "claimRef", "namespace"):
		return 5
	case volume != "" && volume == text(c.volume, "metadata", "name"):
		return 4
	case volume != "":
		return 1 // it is bound to another volume
	case named == class:
		return 3
	default:
		return 2
	}
}

// claimOf returns the claim that a PersistentVolume may be bound to.
func claimOf(volume map[string]any) map[string]any {
	name, namespace := text(volume, "spec", "claimRef", "name"), text(volume, "spec", "claimRef", "namespace")
	if name == "" {
		name, namespace = "claim", "default"
	}
	spec, _ := volume["spec"].(map[string]any)
	claim := map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"storageClassName": text(volume, "spec", "storageClassName"), "accessModes": spec["accessModes"],
			"resources": map[string]any{"requests": map[string]any{"storage": text(volume, "spec", "capacity", "storage")}},
		},
	}
	if mode := text(volume, "spec", "volumeMode"); mode != "" {
		set(claim, mode, "spec", "volumeMode")
	}
	if claimUID := text(volume, "spec", "claimRef", "uid"); claimUID != "" {
		set(claim, claimUID, "metadata", "uid")
	}
	return claim
}

// chooseNode takes the node with the given name, or the first node. If the class has WaitForFirstConsumer, it is the
// claim's selected node.
func (o *options) chooseNode(g *given, c *objects) error {
	name := text(c.claim, "metadata", "annotations", protocol.SelectedNode)
	c.selected = name != "" || text(c.class, "volumeBindingMode") == string(storagev1.VolumeBindingWaitForFirstConsumer)
	if o.node != "" && !isFile(o.node) {
		name = o.node
		if strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") {
			return fmt.Errorf("--node %s: there is no such file", name)
		}
	}
	c.findNode(g, name)
	if c.selected && !c.static {
		set(c.claim, text(c.node, "metadata", "name"), "metadata", "annotations", protocol.SelectedNode)
	}
	return nil
}

// findNode takes the node with the name; the first node if the name is "".
func (c *objects) findNode(g *given, name string) {
	for _, node := range g.nodes {
		if name == "" || node.Name() == name {
			c.node = runtimeCopy(node.Object)
			stored(c.node, false)
			c.use("node", node.Name(), node)
			return
		}
	}
	words := "the Node"
	if name == "" {
		name, words = "node-1", "no Node was given:"
	}
	c.node = placeholderNode(name)
	c.notef("%s %q was made up, with the labels kubernetes.io/hostname, kubernetes.io/os and kubernetes.io/arch", words, name)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return name == "-" || err == nil && !info.IsDir()
}

// getPVC is the template function get_pvc, with the claims in the files or in the cluster.
func (c *objects) getPVC(ctx context.Context, name, namespace string) (map[string]any, error) {
	if c.lookUp != nil {
		return c.lookUp(ctx, name, namespace)
	}
	claim, ok := c.claims[namespace+"/"+name]
	if !ok {
		return nil, template.ErrNoClaim
	}
	return claim, nil
}

// bind binds the volume and the claim to each other.
func (c *objects) bind(volume map[string]any) {
	c.volume = volume
	c.claim = bound(c.claim, volume)
	metadata := c.claim["metadata"].(map[string]any)
	c.claims[fmt.Sprintf("%s/%s", metadata["namespace"], metadata["name"])] = c.claim
}
