package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/protocol"
)

// install creates the namespace, the other objects of the files if the user asked for that, the copy of the
// PavProvisioner and the StorageClass, and waits until nodes can use the provisioner.
func (r *run) install(ctx context.Context) (outcome, error) {
	if err := r.free(ctx); err != nil {
		return outcome{}, err
	}
	var err error
	if r.agents, err = agent.Namespace(ctx, r.client); err != nil {
		return outcome{}, err
	}
	if err := r.create(ctx, r.namespace()); err != nil {
		return outcome{}, err
	}
	if r.options.WithObjects {
		if err := r.createOthers(ctx); err != nil {
			return outcome{}, err
		}
	}
	if err := r.create(ctx, r.copyOf()); err != nil {
		return outcome{}, err
	}
	if err := r.create(ctx, r.class()); err != nil {
		return outcome{}, err
	}
	if err := r.ready(ctx); err != nil {
		return outcome{}, err
	}
	if !r.input.hasVolumes() {
		return r.installed(r.name)
	}
	nodes, err := r.registered(ctx)
	if err != nil {
		return outcome{}, err
	}
	return r.installed(fmt.Sprintf("%s, on %s", r.name, plural(nodes, "node")))
}

// installed is the outcome of an installation.
func (r *run) installed(what string) (outcome, error) {
	found, err := passed("%s", what)
	if n := len(r.input.others); n > 0 && !r.options.WithObjects {
		found.message += fmt.Sprintf("; %s of the files not created; see --with-objects", plural(n, "other object"))
	}
	return found, err
}

// createOthers creates the other objects of the files. It adds an annotation, and the test's namespace if they have
// none. Objects that exist already are used unchanged, and stay.
func (r *run) createOthers(ctx context.Context) error {
	for _, other := range r.input.others {
		object := other.DeepCopy()
		mapping, err := r.client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("creating %s: %w", describeObject(object), err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
			object.SetNamespace(r.name)
		}
		r.mark(object)
		if err := r.create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// ready waits until the controller agent has accepted the provisioner.
func (r *run) ready(ctx context.Context) error {
	var last string
	err := await(ctx, r.client, &pavv1.PavProvisionerList{}, func(seen objects) (bool, error) {
		for _, object := range seen {
			p, _ := object.(*pavv1.PavProvisioner)
			accepted := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted)
			if accepted != nil && accepted.Status == "False" {
				return false, fmt.Errorf("the PavProvisioner is not accepted: %s", accepted.Message)
			}
			if ready := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerReady); ready != nil {
				last = ready.Message
			}
			return meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerReady), nil
		}
		return false, errors.New("the PavProvisioner was deleted")
	}, only("", r.name)...)
	if errors.Is(err, errTimeout) && last == "" {
		last = "the controller agent has not reported on it: is it running? kubectl -n " + r.agents + " get pods"
	}
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("the PavProvisioner is not ready: %s: %w", last, err)
	}
	return err
}

// registered waits until the provisioner's driver is registered on all nodes that have PaV's node agent and accept
// pods, and returns their number.
func (r *run) registered(ctx context.Context) (nodes int, err error) {
	missing := ""
	err = await(ctx, r.client, &storagev1.CSINodeList{}, func(seen objects) (bool, error) {
		able, err := r.nodesThatTakePods(ctx)
		if err != nil {
			return false, ended(ctx, err)
		}
		nodes, missing = 0, ""
		for _, object := range seen {
			node, _ := object.(*storagev1.CSINode)
			switch {
			case protocol.IsRegistered(node, r.name):
				nodes++
			case protocol.IsRegistered(node, pavv1.Driver) && able[node.Name]:
				missing = node.Name
			}
		}
		return missing == "" && nodes > 0, nil
	})
	if errors.Is(err, errTimeout) && missing == "" {
		return 0, fmt.Errorf("no node that accepts pods has PaV's driver: are the node agents running? kubectl -n %s get pods: %w", r.agents, err)
	}
	if errors.Is(err, errTimeout) {
		return 0, fmt.Errorf("node %s has not registered the provisioner: %w", missing, err)
	}
	return nodes, err
}

// nodesThatTakePods returns the nodes that are ready for pods. The CSINode of a dead node tells nothing, as it does
// not change.
func (r *run) nodesThatTakePods(ctx context.Context) (map[string]bool, error) {
	nodes, able := &corev1.NodeList{}, map[string]bool{}
	if err := r.client.List(ctx, nodes); err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		able[nodes.Items[i].Name] = takesPods(&nodes.Items[i])
	}
	return able, nil
}

// otherNode reports whether a pod with the volume could run on another node, and if not, why.
func (r *run) otherNode(ctx context.Context, than string, pv *corev1.PersistentVolume) (able bool, why string, err error) {
	nodes, csi := &corev1.NodeList{}, &storagev1.CSINodeList{}
	if err := r.client.List(ctx, nodes); err != nil {
		return false, "", fmt.Errorf("listing nodes: %w", err)
	}
	if err := r.client.List(ctx, csi); err != nil {
		return false, "", fmt.Errorf("listing CSINodes: %w", err)
	}
	served := map[string]bool{}
	for i := range csi.Items {
		served[csi.Items[i].Name] = protocol.IsRegistered(&csi.Items[i], r.name)
	}
	why = "the cluster has no other node that accepts pods"
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Name == than || !served[node.Name] || !takesPods(node) {
			continue
		}
		if reaches(pv, node) {
			return true, "", nil
		}
		why = "the volume can be used only from where it is (the node affinity of its PersistentVolume)"
	}
	return false, why, nil
}

func takesPods(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && !node.Spec.Unschedulable
		}
	}
	return false
}

// reaches reports whether a volume can be used from a node. PaV's node affinities have only labels with values.
func reaches(pv *corev1.PersistentVolume, node *corev1.Node) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		if len(term.MatchExpressions) > 0 && matches(term.MatchExpressions, node.Labels) {
			return true
		}
	}
	return false
}

func matches(expressions []corev1.NodeSelectorRequirement, labels map[string]string) bool {
	for _, expression := range expressions {
		if expression.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		value, there := labels[expression.Key]
		if !there || !slices.Contains(expression.Values, value) {
			return false
		}
	}
	return true
}
