// Package conformance_test checks that the driver definitions contain only keys and capabilities that the
// external-storage suite knows. The suite ignores unknown ones, so a mistyped key or capability disables specs
// silently.
package conformance_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubernetes/test/e2e/framework"
	storageframework "k8s.io/kubernetes/test/e2e/storage/framework"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// driverDefinition has the keys of the suite's type of the same name, which is not exported.
type driverDefinition struct {
	DriverInfo   storageframework.DriverInfo
	StorageClass struct {
		FromName                        bool
		FromFile, FromExistingClassName string
	}
	VolumeAttributesClass struct {
		FromFile, FromExistingClassName string
	}
	SnapshotClass struct {
		FromName                        bool
		FromFile, FromExistingClassName string
	}
	GroupSnapshotClass struct {
		FromName                        bool
		FromFile, FromExistingClassName string
	}
	InlineVolumes []struct {
		Attributes       map[string]string
		Shared, ReadOnly bool
	}
	ClientNodeName string
	NodeSelectors  map[string]string
	Timeouts       map[string]string
}

func TestDriversDeclareOnlyWhatTheSuiteKnows(t *testing.T) {
	capabilities := capabilitiesOf(t)
	files, err := filepath.Glob("drivers/*/driver.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no driver definitions: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults(data, capabilities) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

func TestMistypedDefinitionsAreFound(t *testing.T) {
	capabilities := capabilitiesOf(t)
	for name, test := range map[string]struct{ definition, want string }{
		"nothing wrong": {`
DriverInfo:
  Name: x
  SupportedFsType: {"": {}, ext4: {}}
  SupportedSizeRange: {Min: 1Mi}
  Capabilities: {persistence: true, RWX: true}
StorageClass: {FromName: true}
Timeouts: {PodStart: 1m}
`, ``},
		"an unknown key":                {`{DriverInfo: {Name: x, Capability: {block: true}}}`, `unknown field "DriverInfo.Capability"`},
		"a key in another case":         {`{DriverInfo: {Name: x, capabilities: {block: true}}}`, `unknown field "DriverInfo.capabilities"`},
		"a key at the top":              {`{DriverInfo: {Name: x}, Snapshotclass: {FromName: true}}`, `unknown field "Snapshotclass"`},
		"a key of a class":              {`{DriverInfo: {Name: x}, StorageClass: {FromClass: y}}`, `unknown field "StorageClass.FromClass"`},
		"a key twice":                   {"DriverInfo: {Name: x}\nDriverInfo: {Name: y}", `key "DriverInfo" already set in map`},
		"a capability in another case":  {`{DriverInfo: {Name: x, Capabilities: {fsgroup: true}}}`, `unknown capability "fsgroup"`},
		"a capability that is switched": {`{DriverInfo: {Name: x, Capabilities: {multiPods: false}}}`, `unknown capability "multiPods"`},
		"a timeout":                     {`{DriverInfo: {Name: x}, Timeouts: {PodStarts: 1m}}`, `unknown timeout "PodStarts"`},
		"a timeout's unit":              {`{DriverInfo: {Name: x}, Timeouts: {PodStart: 1}}`, `cannot unmarshal number`},
		"a timeout without a unit":      {`{DriverInfo: {Name: x}, Timeouts: {PodStart: "1"}}`, `timeout "PodStart": time: missing unit`},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(faults([]byte(test.definition), capabilities), "\n")
			if !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

// TestKeysAreThoseOfTheSuite fails if the suite's type has other keys, as in another version of the suite.
func TestKeysAreThoseOfTheSuite(t *testing.T) {
	want := []string{}
	ast.Inspect(parse(t, "test/e2e/storage/external/external.go"), func(node ast.Node) bool {
		if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.Name == "driverDefinition" {
			want = append(want, keysOfSource("", spec.Type)...)
		}
		return true
	})
	got := keysOfType("", reflect.TypeFor[driverDefinition]())
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-suite +here):\n%s", diff)
	}
}

// faults returns the parts of a definition that the suite would ignore, and the errors in it. It reads a definition
// like the suite does: keys are case-sensitive.
func faults(data []byte, capabilities []string) []string {
	definition := driverDefinition{}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return []string{err.Error()}
	}
	strict, err := kjson.UnmarshalStrict(asJSON, &definition)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, err := range strict {
		found = append(found, err.Error())
	}
	for capability := range definition.DriverInfo.Capabilities {
		if !slices.Contains(capabilities, string(capability)) {
			found = append(found, fmt.Sprintf("unknown capability %q", capability))
		}
	}
	for name, value := range definition.Timeouts {
		if _, ok := reflect.TypeFor[framework.TimeoutContext]().FieldByName(name); !ok {
			found = append(found, fmt.Sprintf("unknown timeout %q", name))
		}
		if _, err := time.ParseDuration(value); err != nil {
			found = append(found, fmt.Sprintf("timeout %q: %v", name, err))
		}
	}
	return found
}

// capabilitiesOf returns the values of the suite's constants of type Capability.
func capabilitiesOf(t *testing.T) []string {
	t.Helper()
	var capabilities []string
	ast.Inspect(parse(t, "test/e2e/storage/framework/testdriver.go"), func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Capability" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		capabilities = append(capabilities, value)
		return true
	})
	if !slices.Contains(capabilities, string(storageframework.CapPersistence)) {
		t.Fatalf("the suite's capabilities were not found: %q", capabilities)
	}
	return capabilities
}

// parse parses a Go file of the suite's module.
func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("finding the suite: %v", err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(root)), file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// keysOfSource returns the names of a struct's fields and, recursively, of the fields of unnamed struct types in it.
func keysOfSource(prefix string, expression ast.Expr) []string {
	if list, ok := expression.(*ast.ArrayType); ok {
		expression = list.Elt
	}
	structure, ok := expression.(*ast.StructType)
	if !ok {
		return nil
	}
	var keys []string
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			keys = append(append(keys, prefix+name.Name), keysOfSource(prefix+name.Name+".", field.Type)...)
		}
	}
	return keys
}

// keysOfType is like keysOfSource, but for a type of this program.
func keysOfType(prefix string, kind reflect.Type) []string {
	if kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || prefix != "" && kind.Name() != "" {
		return nil
	}
	var keys []string
	for field := range kind.Fields() {
		keys = append(append(keys, prefix+field.Name), keysOfType(prefix+field.Name+".", field.Type)...)
	}
	return keys
}
