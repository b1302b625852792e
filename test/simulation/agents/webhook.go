package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Webhook is PaV's admission webhook for the agents' pods. It answers at once from the current objects; the real
// webhook reads one object after the other.
type Webhook struct {
	World  *world.World
	Faults *Faults

	// NodeOf returns the node of a node agent, given its name.
	NodeOf func(agent string) string

	// Away reports that no controller agent serves the webhook. Its calls fail then.
	Away bool

	nodes, controllers ctrladmission.Handler
}

// NewWebhook returns a webhook that is served.
func NewWebhook(w *world.World, shared *Shared, faults *Faults, nodeOf func(agent string) string) *Webhook {
	direct := world.Direct{Store: w.Store, By: "webhook"}
	return &Webhook{
		World: w, Faults: faults, NodeOf: nodeOf,
		nodes:       &admission.PodHandler{Client: direct, Templates: shared.Templates},
		controllers: &admission.ControllerPodHandler{Client: direct, Templates: shared.Templates},
	}
}

// Judge implements world.Hook. It selects pods by Go functions; a real API server selects them by the match conditions
// in deployment.yaml. The integration tests check that both select the same pods.
func (h *Webhook) Judge(by string, before, after client.Object) error {
	pod, ok := after.(*corev1.Pod)
	if !ok || before != nil {
		return nil
	}
	switch {
	case strings.HasPrefix(by, "agent-"):
		references, err := podplan.PodReferences(pod)
		if err != nil || len(references) == 0 && pod.Annotations[pavv1.AdmitAnnotation] == "" {
			return err
		}
		user := authenticationv1.UserInfo{Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/node-name": {h.NodeOf(by)}}}
		return h.ask(h.nodes, pavv1.PodsWebhook, user, pod)
	case strings.HasPrefix(by, "controller-") && len(workflow.NodeRights(&pod.Spec)) > 0:
		return h.ask(h.controllers, pavv1.ControllerPodsWebhook, authenticationv1.UserInfo{}, pod)
	}
	return nil
}

// ask makes a handler check a pod. It returns the error that the API server would return.
func (h *Webhook) ask(handler ctrladmission.Handler, name string, user authenticationv1.UserInfo, pod *corev1.Pod) error {
	if h.Away || h.World.Chance(h.Faults.Refused) {
		h.World.Counts["pods that the webhook could not judge"]++
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: nobody serves it", name))
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	response := handler.Handle(logr.NewContext(context.Background(), logr.Discard()), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{ //nolint:forbidigo // a call of the API server has no context here
		Operation: admissionv1.Create, Namespace: pod.Namespace, Name: pod.Name, Object: runtime.RawExtension{Raw: raw}, UserInfo: user,
	}})
	if response.Allowed {
		h.World.Counts["pods admitted by the webhook"]++
		return nil
	}
	h.World.Counts["pods refused by the webhook"]++
	if response.Result == nil {
		return apierrors.NewInternalError(errors.New("an answer without a reason"))
	}
	h.World.Notef("the webhook refuses %s: %s", pod.Name, response.Result.Message)
	status := *response.Result
	status.Status, status.Message = metav1.StatusFailure, fmt.Sprintf("admission webhook %q denied the request: %s", name, status.Message)
	return &apierrors.StatusError{ErrStatus: status}
}
