package admission

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/observability"
)

const (
	// maxWarning is the maximum length of a warning, in bytes: API servers truncate those of more than 256.
	maxWarning = 256

	// maxWarnings is the maximum number of warnings: API servers accept 4 KiB of them.
	maxWarnings = 15

	// maxCause is the maximum length of the text of a mistake, in bytes.
	maxCause = 2000
)

// respond returns the response for findings: denied with all mistakes at once, or else allowed, in both cases with
// the warnings.
func respond(name string, findings []definition.Finding) admission.Response {
	var mistakes, warnings []string
	var causes []metav1.StatusCause
	for _, f := range findings {
		if f.Severity != definition.Error {
			warnings = append(warnings, observability.Clip(f.String(), maxWarning))
			continue
		}
		message := observability.Clip(strings.TrimPrefix(f.String(), f.Field+": "), maxCause)
		causes = append(causes, metav1.StatusCause{Type: causeType(f), Field: f.Field, Message: message})
		mistakes = append(mistakes, f.Field+": "+message)
	}
	response := admission.Allowed("").WithWarnings(atMost(maxWarnings, distinct(warnings))...)
	if len(causes) == 0 {
		return response
	}
	response.Allowed = false
	response.Result = &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("PavProvisioner %q is invalid: %s", name, strings.Join(mistakes, "; ")),
		Details: &metav1.StatusDetails{Name: name, Group: pavv1.Group, Kind: "PavProvisioner", Causes: causes},
	}
	return response
}

func causeType(f definition.Finding) metav1.CauseType {
	if f.Key {
		return "FieldValueForbidden" // as Kubernetes says of fields that must not be there
	}
	return metav1.CauseTypeFieldValueInvalid
}

// distinct removes repeated texts.
func distinct(texts []string) []string {
	var kept []string
	for _, text := range texts {
		if !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}

func atMost(limit int, texts []string) []string {
	if len(texts) <= limit {
		return texts
	}
	return append(texts[:limit-1:limit-1], fmt.Sprintf("there are %d more warnings; to see them, run: kubectl pav lint FILE", len(texts)-limit+1))
}
