package chainsaw

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Runner runs a test.
type Runner struct {
	// Client may do everything, and Namespace, which must exist, is where objects are that name none.
	Client    client.Client
	Namespace string

	// Values is the text of the file of values.
	Values []byte

	// Before is called before each step, with its name.
	Before func(step string)

	// Timeout is how long each assertion, and the end of each object, may take.
	Timeout time.Duration

	bindings map[string]any
	made     []*unstructured.Unstructured
}

// test is a file of Chainsaw.
type test struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       struct {
		Template bool      `json:"template"`
		Bindings []binding `json:"bindings"`
		Steps    []struct {
			Name string      `json:"name"`
			Try  []operation `json:"try"`
		} `json:"steps"`
	} `json:"spec"`
}

type binding struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// operation has exactly one of its fields.
type operation struct {
	Apply  *resource `json:"apply"`
	Create *resource `json:"create"`
	Assert *resource `json:"assert"`
}

type resource struct {
	Resource map[string]any `json:"resource"`
}

// Run runs a test, which is YAML.
func (r *Runner) Run(t *testing.T, text []byte) {
	t.Helper()
	parsed := test{}
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.APIVersion != "chainsaw.kyverno.io/v1alpha1" || parsed.Kind != "Test" || !parsed.Spec.Template {
		t.Fatalf("not a test with templates: %s %s", parsed.APIVersion, parsed.Kind)
	}
	if err := r.bind(parsed.Spec.Bindings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cleanUp(t) })
	for _, step := range parsed.Spec.Steps {
		if r.Before != nil {
			r.Before(step.Name)
		}
		for _, o := range step.Try {
			if err := r.operate(t.Context(), o); err != nil {
				t.Fatalf("step %q: %v", step.Name, err)
			}
		}
	}
}

// bind evaluates the bindings, in their order.
func (r *Runner) bind(all []binding) error {
	values := map[string]any{}
	if err := yaml.Unmarshal(r.Values, &values); err != nil {
		return fmt.Errorf("the values: %w", err)
	}
	r.bindings = map[string]any{"namespace": r.Namespace, "values": values}
	for _, b := range all {
		value, err := r.evaluate(b.Value)
		if err != nil {
			return fmt.Errorf("binding %s: %w", b.Name, err)
		}
		r.bindings[b.Name] = value
	}
	return nil
}

var (
	// expression is a string that is evaluated; a reference is the only kind that is known.
	expression = regexp.MustCompile(`^\(.*\)$`)
	reference  = regexp.MustCompile(`^\(\$([A-Za-z]+(?:\.[A-Za-z]+)*)\)$`)
)

// evaluate returns a value with all expressions in it evaluated.
func (r *Runner) evaluate(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		evaluated := map[string]any{}
		for name, part := range v {
			if expression.MatchString(name) {
				return nil, fmt.Errorf("an expression as a name is not known: %s", name)
			}
			var err error
			if evaluated[name], err = r.evaluate(part); err != nil {
				return nil, err
			}
		}
		return evaluated, nil
	case []any:
		evaluated := make([]any, len(v))
		for i, part := range v {
			var err error
			if evaluated[i], err = r.evaluate(part); err != nil {
				return nil, err
			}
		}
		return evaluated, nil
	case string:
		if !expression.MatchString(v) {
			return v, nil
		}
		return r.resolve(v)
	default:
		return v, nil
	}
}

// resolve returns what an expression refers to.
func (r *Runner) resolve(text string) (any, error) {
	match := reference.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("the expression is not known: %s", text)
	}
	var value any = r.bindings
	for name := range strings.SplitSeq(match[1], ".") {
		fields, _ := value.(map[string]any)
		part, found := fields[name]
		if !found {
			return nil, fmt.Errorf("%s refers to nothing", text)
		}
		value = part
	}
	return value, nil
}

func (r *Runner) operate(ctx context.Context, o operation) error {
	switch {
	case o.Assert != nil && o.Apply == nil && o.Create == nil:
		object, err := r.object(o.Assert.Resource)
		if err != nil {
			return err
		}
		return r.assert(ctx, object)
	case o.Assert == nil && (o.Apply == nil) != (o.Create == nil):
		object, err := r.object(cmp.Or(o.Apply, o.Create).Resource)
		if err != nil {
			return err
		}
		// To apply a resource that exists is to patch it, which no step of the test does.
		if err := r.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		r.made = append(r.made, object)
		return nil
	default:
		return errors.New("an operation is one of apply, create and assert")
	}
}

// object returns the object of a resource, which must have a name.
func (r *Runner) object(wanted map[string]any) (*unstructured.Unstructured, error) {
	value, err := r.evaluate(wanted)
	if err != nil {
		return nil, err
	}
	fields, _ := value.(map[string]any)
	object := &unstructured.Unstructured{Object: fields}
	if object.GetName() == "" || object.GetKind() == "" {
		return nil, fmt.Errorf("a resource without a kind or a name is not known: %v", fields)
	}
	kind := object.GroupVersionKind()
	mapping, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("finding the kind: %w", err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
		object.SetNamespace(r.Namespace)
	}
	return object, nil
}

// assert waits until an object has all fields that are wanted.
func (r *Runner) assert(ctx context.Context, want *unstructured.Unstructured) error {
	return r.await(ctx, want, func(found *unstructured.Unstructured, err error) string {
		if err != nil {
			return err.Error()
		}
		return missing("", want.Object, found.Object)
	})
}

// await waits until there is no problem with an object.
func (r *Runner) await(ctx context.Context, object *unstructured.Unstructured, problemOf func(*unstructured.Unstructured, error) string) error {
	problem := ""
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, r.Timeout, true, func(ctx context.Context) (bool, error) {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(object.GroupVersionKind())
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), found)
		problem = problemOf(found, err)
		return problem == "", nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s %s: %s", object.GetKind(), object.GetName(), problem)
	}
	return nil
}

// missing returns what a value lacks of what is wanted, or "". A list must have as many items.
func missing(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if problem := missing(path+"."+name, w[name], fields[name]); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		items, _ := got.([]any)
		if len(items) != len(w) {
			return fmt.Sprintf("%s has %d items, want %d", path, len(items), len(w))
		}
		for i := range w {
			if problem := missing(fmt.Sprintf("%s[%d]", path, i), w[i], items[i]); problem != "" {
				return problem
			}
		}
		return ""
	default:
		wanted, _ := json.Marshal(want) // which came from YAML, and the other from the API server
		found, _ := json.Marshal(got)
		if string(wanted) != string(found) {
			return fmt.Sprintf("%s is %s, want %s", path, found, wanted)
		}
		return ""
	}
}

// cleanUp deletes what the test has made.
func (r *Runner) cleanUp(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if r.Before != nil {
		r.Before("clean up")
	}
	for _, object := range slices.Backward(r.made) {
		err := r.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting %s %s: %v", object.GetKind(), object.GetName(), err)
			continue
		}
		if err := r.await(ctx, object, func(_ *unstructured.Unstructured, err error) string {
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprintf("it is left: %v", err)
		}); err != nil {
			t.Error(err)
		}
	}
}
