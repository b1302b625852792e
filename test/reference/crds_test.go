package reference

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// readDefinitions returns the definitions in the files of a directory with an end of their names.
func readDefinitions(t *testing.T, directory, end string) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directory, "*"+end))
	if err != nil {
		t.Fatal(err)
	}
	var documents [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, text)
	}
	all, err := Definitions(documents...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The kinds that PaV ships for others' APIs are those of their authors.
func TestDefinitions_EqualTheirs(t *testing.T) {
	written := Written(t, "Definitions of kinds")
	for _, api := range []struct {
		ours, theirs, end string
		kinds             int
	}{
		{filepath.Join("..", "..", "deploy", "foreign", "objectbucket"), filepath.Join(LibBucketProvisioner.Directory(t), "deploy", "crds"), "_crd.yaml", 2},
		{filepath.Join("..", "..", "deploy", "foreign", "cosi"), filepath.Join(COSIAPI.Directory(t), "crds"), ".yaml", 5},
	} {
		ours, theirs := readDefinitions(t, api.ours, ".yaml"), readDefinitions(t, api.theirs, api.end)
		if len(theirs) != api.kinds || !slices.Equal(slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs))) {
			t.Errorf("PaV has %v, and they have %v", slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs)))
			continue
		}
		for name, their := range theirs {
			written.Check(t, Compare(their.Spec.Names.Kind, fieldsOf(t, their), fieldsOf(t, ours[name])))
		}
	}
	written.CheckAll(t)
}

func fieldsOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) Fields {
	t.Helper()
	fields, err := FieldsOfDefinition(crd)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// A change of anything that clients can notice is found.
func TestFieldsOfDefinition_TellEverything(t *testing.T) {
	const name = "buckets.objectstorage.k8s.io"
	crd := func() *apiextensionsv1.CustomResourceDefinition {
		return readDefinitions(t, filepath.Join("..", "..", "deploy", "foreign", "cosi"), ".yaml")[name]
	}
	spec := func(c *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
		return c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	}
	for want, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"group":                     func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Group = "example.com" },
		"scope":                     func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Scope = apiextensionsv1.NamespaceScoped },
		"plural":                    func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Names.Plural = "pails" },
		"shortNames":                func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Names.ShortNames = []string{"b"} },
		"version v1alpha1":          func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false },
		"v1alpha1 subresources":     func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Subresources = nil },
		"v1alpha1.spec.bucketClaim": func(c *apiextensionsv1.CustomResourceDefinition) { spec(c).Required[0] = "parameters" },
		"v1alpha1.spec.driverName": func(c *apiextensionsv1.CustomResourceDefinition) {
			changeField(spec(c), "driverName", func(f *apiextensionsv1.JSONSchemaProps) { f.Type = "integer" })
		},
		"v1alpha1.spec.protocols[]": func(c *apiextensionsv1.CustomResourceDefinition) {
			spec(c).Properties["protocols"].Items.Schema.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"S3"`)}}
		},
		"v1alpha1.spec.deletionPolicy": func(c *apiextensionsv1.CustomResourceDefinition) {
			changeField(spec(c), "deletionPolicy", func(f *apiextensionsv1.JSONSchemaProps) { f.Default = nil })
		},
		"v1alpha1.spec.parameters.*": func(c *apiextensionsv1.CustomResourceDefinition) {
			spec(c).Properties["parameters"].AdditionalProperties.Schema.Type = "integer"
		},
		"v1alpha1.status.bucketID": func(c *apiextensionsv1.CustomResourceDefinition) {
			delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "bucketID")
		},
	} {
		changed := crd()
		change(changed)
		found := Compare("Bucket", fieldsOf(t, crd()), fieldsOf(t, changed))
		if !slices.ContainsFunc(found, func(d Difference) bool { return d.Field == want }) {
			t.Errorf("%s: found %+v", want, found)
		}
	}
	if found := Compare("Bucket", fieldsOf(t, crd()), fieldsOf(t, crd())); len(found) > 0 {
		t.Errorf("a definition differs from itself: %+v", found)
	}
}

func changeField(in apiextensionsv1.JSONSchemaProps, name string, change func(*apiextensionsv1.JSONSchemaProps)) {
	field := in.Properties[name]
	change(&field)
	in.Properties[name] = field
}

func TestTable_RowsAreReadAsTheyArePrinted(t *testing.T) {
	for _, d := range []Difference{{"Bucket", ".spec", "string", ""}, {"ObjectBucket", ".a.b[]", "", `{"enum":["x"]}`}} {
		if got, err := parse(strings.Replace(d.row(), "...", "a reason", 1)); err != nil || got != d {
			t.Errorf("%s is read as %+v, %v", d.row(), got, err)
		}
	}
	for _, row := range []string{"| Bucket | `.a` | `1` | `2` |", "| Bucket | `.a` | 1 | `2` | why |", "| Bucket | `.a` | `1` | `2` |  |"} {
		if got, err := parse(row); err == nil {
			t.Errorf("%s is read as %+v", row, got)
		}
	}
}

func TestTable_DifferencesHaveTheirRows(t *testing.T) {
	table := &Table{rows: map[Difference]bool{}}
	for _, row := range []string{"| Bucket, Pail | `.a` | `1` | `2` | why |", "| Bucket | `.b.*` | – | `*` | why |"} {
		if err := table.add(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.add("| Pail | `.a` | `1` | `2` | another reason |"); err == nil {
		t.Error("a difference has two rows")
	}
	for d, want := range map[Difference]bool{
		{"Bucket", ".a", "1", "2"}:   true,
		{"Pail", ".a", "1", "2"}:     true,
		{"Barrel", ".a", "1", "2"}:   false,
		{"Bucket", ".a", "1", "3"}:   false,
		{"Bucket", ".b.c", "", "1"}:  true,
		{"Bucket", ".b.c", "1", "2"}: false,
		{"Bucket", ".c", "", "1"}:    false,
		{"Pail", ".b.c", "", "1"}:    false,
	} {
		if row, got := table.rowOf(d); got != want {
			t.Errorf("%+v is written in %+v: %t", d, row, got)
		}
	}
}
