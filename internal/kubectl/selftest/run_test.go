package selftest

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/kubectl/status"
)

// What failed is described, and a description that fails is not left out in silence.
func TestStepThatFails_IsDescribed(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		err  error
		want string
	}{
		"described": {text: "Timeline\n", want: "\nTimeline\n"},
		"not":       {err: errors.New("the API server is busy"), want: "it cannot be described: the API server is busy"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, provisionerYAML, nil)
			r.describe = func(context.Context, status.Ref) (string, error) { return c.text, c.err }
			found := r.explain(t.Context(), volume{mode: corev1.PersistentVolumeFilesystem}, errors.New("the backend is on fire"))
			if got := strings.Join(found.details, "\n"); got != c.want || found.result != Failed || found.message != "the backend is on fire" {
				t.Errorf("got %+v, want the details %q", found, c.want)
			}
		})
	}
}
