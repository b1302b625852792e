package definition

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// bucketField checks a field of a section of buckets. The field may be a template, and is not null.
func (c *check) bucketField(w *walker, field, name string, value any) {
	switch name {
	case "store":
		w.value(field, reflect.TypeFor[string](), value)
	case "maxBucketsPerNamespace", "maxAccessesPerBucket":
		c.count(w, field, value)
	case "bucketId":
		c.bucketID(w, field, value)
	case "info":
		c.info(w, field, value)
	case "fromSecret":
		c.fromSecret(w, field, value)
	}
}

// count checks a number of things. A template for it yields a string or a number.
func (c *check) count(w *walker, field string, value any) {
	if text, isText := value.(string); isText && template.HasTemplate(text) {
		c.analyze(w.section, field, text)
		return
	}
	if number, ok := integer(value); ok {
		value = number
	}
	if _, err := template.Count(field, value); err != nil {
		c.errorf(field, "%s", strings.TrimPrefix(err.Error(), field+": "))
	}
}

// bucketID checks the identifier of a bucket.
func (c *check) bucketID(w *walker, field string, value any) {
	if _, ok := w.value(field, reflect.TypeFor[string](), value); !ok {
		return // a template, or of the wrong type
	}
	if err := workflow.CheckID(value.(string)); err != nil {
		c.errorf(field, "%s", err)
		return
	}
	c.warnf(field, "is the same for every bucket, so only one bucket can exist; use a template such as \"{{ bucketName }}\", or leave it out")
}

// bucketInfo has what clients are told of a bucket, by its names in package workflow.
type bucketInfo struct {
	Endpoint        string             `json:"endpoint"`
	Region          string             `json:"region"`
	SubRegion       string             `json:"subRegion"`
	AddressingStyle addressingStyle    `json:"addressingStyle"`
	StorageAccount  string             `json:"storageAccount"`
	ProjectID       string             `json:"projectId"`
	Host            string             `json:"host"`
	Port            intstr.IntOrString `json:"port"`
}

// addressingStyle is one of workflow.AddressingStyles.
type addressingStyle string

// info checks what clients are told of a bucket.
func (c *check) info(w *walker, field string, value any) {
	known, _ := w.value(field, reflect.TypeFor[bucketInfo](), value)
	entries, _ := known.(map[string]any)
	for name, value := range entries {
		if number, ok := integer(value); ok {
			value = number
		}
		text, err := template.Text(child(field, name), value)
		if err != nil {
			continue // null
		}
		if err := workflow.CheckInfo(name, text); err != nil {
			c.errorf(child(field, name), "%s", err)
		}
	}
}

var credentialsOfAll = sink{what: "the Secret whose credentials the clients get", names: true}

// fromSecret checks the name of the Secret with the credentials of all accesses.
func (c *check) fromSecret(w *walker, field string, value any) {
	if _, ok := w.value(field, reflect.TypeFor[string](), value); !ok {
		if analysis := c.analyses[field]; analysis != nil {
			c.reached(field, credentialsOfAll, analysis.Flows)
		}
		return
	}
	switch text := value.(string); {
	case !isSubdomain(text):
		c.errorf(field, "%s is not a valid name of a Secret: use at most 253 lower-case letters, digits, '-' and '.'", quote(text))
	case strings.HasPrefix(text, workflow.SealPrefix):
		c.errorf(field, "%s is a name of Secrets that PaV keeps for itself; choose one that does not begin with %q", quote(text), workflow.SealPrefix)
	}
}
