package admission

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/workflow"
)

// within limits the time of an answer besides the check, which has its own limit: the API server waits ten seconds.
const within = 3 * time.Second

const (
	// dryRunsAtOnce is how many definitions' pods are tried at once: requests may come from any client.
	dryRunsAtOnce = 4

	// dryRunWait is how long a definition waits for its turn, before it is checked without a dry run.
	dryRunWait = time.Second
)

// Handler answers requests to write a PavProvisioner.
type Handler struct {
	// Definitions checks definitions.
	Definitions *definition.Checker

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Client reads the API server, not a cache, and writes only dry runs. It has its own rate limit at the API
	// server: a webhook must not wait for reconcilers.
	Client client.Client

	dryRuns chan struct{} // slots for definitions whose pods are tried
}

func newHandler(definitions *definition.Checker, defaults workflow.Defaults, dry client.Client) *Handler {
	return &Handler{Definitions: definitions, PodDefaults: defaults, Client: dry, dryRuns: make(chan struct{}, dryRunsAtOnce)}
}

// Handle implements admission.Handler.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	object, err := decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the object: %w", err))
	}
	old, err := decode(request.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the old object: %w", err))
	}
	if passes(request.Operation, object, old) {
		return admission.Allowed("")
	}
	findings := h.Definitions.Check(object)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if request.Operation == admissionv1.Create {
		findings = append(findings, h.name(ctx, object)...)
	}
	findings = append(findings, h.tryPods(ctx, object, findings)...)
	response := respond(request.Name, findings)
	ctrl.LoggerFrom(ctx).Info("judged a definition",
		"provisioner", request.Name, "allowed", response.Allowed, "findings", len(findings), "user", request.UserInfo.Username)
	return response
}

func decode(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	object := map[string]any{}
	err := json.Unmarshal(raw, &object) // integers become int64
	return object, err
}

// passes reports whether a request is not checked. The webhook's configuration has the same rules, so that such
// requests do not even need a running agent; but it can be edited.
func passes(operation admissionv1.Operation, object, old map[string]any) bool {
	switch operation {
	case admissionv1.Create:
		return false
	case admissionv1.Update:
		deleted := (&unstructured.Unstructured{Object: object}).GetDeletionTimestamp() != nil
		return deleted || reflect.DeepEqual(object["spec"], old["spec"])
	default:
		return true
	}
}

// name reports whether a driver that is not PaV's has the name of a new provisioner.
func (h *Handler) name(ctx context.Context, object map[string]any) []definition.Finding {
	name := (&unstructured.Unstructured{Object: object}).GetName()
	if name == "" {
		return nil
	}
	driver := &storagev1.CSIDriver{}
	err := h.Client.Get(ctx, client.ObjectKey{Name: name}, driver)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return []definition.Finding{{Severity: definition.Warning, Field: "metadata.name", Message: fmt.Sprintf("whether another driver has this name is not known: %v", err)}}
	case definition.IsForeignDriver(driver):
		return []definition.Finding{{Severity: definition.Error, Field: "metadata.name", Message: fmt.Sprintf(
			"CSIDriver %q exists and is not PaV's: choose another name, or delete that CSIDriver if its driver is no longer used", name)}}
	}
	return nil
}
