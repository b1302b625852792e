package lint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/source"
)

// askAll adds the API server's errors and warnings from a dry run with each PavProvisioner, if they are not known
// already.
func askAll(ctx context.Context, env *cli.Env, result *Result, documents []source.Document) error {
	s, err := connect(env)
	if err != nil {
		return err
	}
	for _, d := range documents {
		known := slices.Clone(result.Findings)
		found, err := s.ask(ctx, d)
		if err != nil {
			return err
		}
		for _, f := range found {
			if !slices.ContainsFunc(known, func(k Finding) bool { return covers(k, f) }) {
				result.Findings = append(result.Findings, f)
			}
		}
	}
	return nil
}

// covers reports whether a known finding makes one of the API server superfluous.
func covers(known, f Finding) bool {
	if known.File != f.File || known.Provisioner != f.Provisioner || known.Severity != f.Severity {
		return false
	}
	return strings.Contains(f.Message, known.Message) || known.Field == f.Field && known.Field != "" && f.Severity == definition.Error
}

// server is a connection that collects warnings.
type server struct {
	client client.Client

	mutex    sync.Mutex
	warnings []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (s *server) HandleWarningHeader(code int, _, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if code == 299 && text != "" && !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

func (s *server) takeWarnings() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken := s.warnings
	s.warnings = nil
	return taken
}

func connect(env *cli.Env) (*server, error) {
	config, err := env.Config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	s := &server{}
	config = rest.CopyConfig(config)
	config.WarningHandler = s
	s.client, err = client.New(config, client.Options{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return s, nil
}

// ask sends a dry run with an object.
func (s *server) ask(ctx context.Context, d source.Document) ([]Finding, error) {
	err := s.dryRun(ctx, d)
	var findings []Finding
	if err != nil {
		if findings = refusals(d, err); findings == nil {
			return nil, fmt.Errorf("asking the cluster about PavProvisioner %q: %w", d.Name(), err)
		}
	}
	for _, warning := range s.takeWarnings() {
		findings = append(findings, At(d, definition.Finding{Severity: definition.Warning, Message: "the cluster says: " + warning}))
	}
	return findings, nil
}

func (s *server) dryRun(ctx context.Context, d source.Document) error {
	object := &unstructured.Unstructured{Object: d.Object}
	object = object.DeepCopy()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	err := s.client.Get(ctx, client.ObjectKey{Name: object.GetName()}, found)
	if apierrors.IsNotFound(err) {
		return s.client.Create(ctx, object, client.DryRunAll)
	}
	if err != nil {
		return err
	}
	object.SetResourceVersion(found.GetResourceVersion())
	return s.client.Update(ctx, object, client.DryRunAll)
}

// refusals returns the reasons for which the API server refuses an object; nil if the error is of another kind.
func refusals(d source.Document, err error) []Finding {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) && !apierrors.IsRequestEntityTooLargeError(err) {
		return nil
	}
	about := status.Status()
	var findings []Finding
	if about.Details != nil {
		for _, cause := range about.Details.Causes {
			findings = append(findings, At(d, definition.Finding{Severity: definition.Error, Field: cause.Field, Message: "the cluster says: " + cause.Message}))
		}
	}
	if len(findings) == 0 {
		findings = append(findings, At(d, definition.Finding{Severity: definition.Error, Message: "the cluster says: " + about.Message}))
	}
	return findings
}
