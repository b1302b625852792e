package integration

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/internal/admission"
)

// The definitions of internal/definition/testdata, and the examples, are given to a real API server.
const definitions = "../../internal/definition/testdata"

// warnings collects what an API server warns of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text
	w.text = nil
	return text
}

// judge returns what the API server says of a definition.
type judge func(t *testing.T, file string) (warned []string, refusal error)

func newJudge(t *testing.T) judge {
	t.Helper()
	c := start(t)
	w := serveWebhook(t, c)
	w.launch(t, admission.DefaultLifetimes())
	seen := &warnings{}
	config := rest.CopyConfig(c.Environment.Config)
	config.QPS, config.WarningHandler = -1, seen
	author, err := client.New(config, client.Options{Scheme: c.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, file string) ([]string, error) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			t.Fatal(err)
		}
		refusal := author.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
		return seen.take(), refusal
	}
}

func TestAdmission_ReportsEachMistake(t *testing.T) {
	ask := newJudge(t)
	for _, file := range definitionFiles(t, definitions+"/mistakes/*.yaml", 60) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			warned, refusal := ask(t, file)
			var mistakes []string
			for line := range strings.Lines(string(text)) {
				expectation, ok := strings.CutPrefix(line, "# finding: ")
				if !ok {
					continue
				}
				parts := strings.SplitN(expectation, " ", 4) // severity, line, field, words
				switch {
				case parts[0] == "error":
					mistakes = append(mistakes, parts[2])
				case refusal == nil && parts[2] != "metadata.namespace": // no client sends it
					wantWarned(t, warned, parts[2])
				}
			}
			wantRefused(t, refusal, mistakes)
		})
	}
}

func wantWarned(t *testing.T, warned []string, field string) {
	t.Helper()
	if !slices.ContainsFunc(warned, func(w string) bool { return strings.HasPrefix(w, field+": ") }) {
		t.Errorf("no warning of %s, but %q", field, warned)
	}
}

// wantRefused fails the test unless the fields of all mistakes are named. If the API server itself refuses the definition,
// mostly because of the schema, the webhook is not called: then one field is enough.
func wantRefused(t *testing.T, refusal error, mistakes []string) {
	t.Helper()
	if (refusal == nil) != (len(mistakes) == 0) {
		t.Errorf("the mistakes are in %q, and the answer is: %v", mistakes, refusal)
		return
	}
	if len(mistakes) == 0 || meta.IsNoMatchError(refusal) || apierrors.IsBadRequest(refusal) {
		return // such an object has no place at all
	}
	var unnamed []string
	for _, field := range mistakes {
		if !names(refusal, field) {
			unnamed = append(unnamed, field)
		}
	}
	byWebhook := strings.Contains(refusal.Error(), "admission webhook")
	if len(unnamed) == len(mistakes) || byWebhook && len(unnamed) > 0 {
		t.Errorf("%q are not named by: %v", unnamed, refusal)
	}
}

// names reports whether a refusal has a cause with the field, or is by the API server and mentions it.
func names(refusal error, field string) bool {
	var status apierrors.APIStatus
	if errors.As(refusal, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field == field {
				return true
			}
		}
	}
	return strings.Contains(refusal.Error(), field)
}

func TestAdmission_HasNothingToSayOfCorrectDefinitions(t *testing.T) {
	ask := newJudge(t)
	files := append(definitionFiles(t, definitions+"/correct/*.yaml", 20), definitionFiles(t, "../../examples/*/provisioner.yaml", 1)...)
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			if warned, refusal := ask(t, file); refusal != nil || len(warned) > 0 {
				t.Errorf("got %v with warnings %q", refusal, warned)
			}
		})
	}
}

func definitionFiles(t *testing.T, pattern string, atLeast int) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < atLeast {
		t.Fatalf("%s: there are %d files, want at least %d", pattern, len(files), atLeast)
	}
	return files
}
