package definition

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/albertofaria/pav/internal/template"
)

// sink is a field in which a value chosen by a tenant may give access to something that does not belong to the tenant.
type sink struct {
	// place matches the end of the field's path in a pod template.
	place *regexp.Regexp

	// what is what the value selects, for the message.
	what string

	// names means that the value is the name of an object, so the name of a claim matters too. own means that the
	// object is in the pod's namespace.
	names, own bool
}

var sinks = []sink{
	{regexp.MustCompile(`^\.metadata\.namespace$`), "the namespace that the pod runs in", true, false},
	{regexp.MustCompile(`\.image$`), "the image that is run", true, false},
	{regexp.MustCompile(`^\.spec\.serviceAccount(Name)?$`), "the service account that the pod has", true, true},
	{regexp.MustCompile(`\.(secretKeyRef|secretRef|nodePublishSecretRef|secret|imagePullSecrets\[\d+\])\.name$|\.secretName$`), "the secret that the pod gets", true, true},
	{regexp.MustCompile(`\.hostPath\.path$`), "the path on the node that the pod gets", false, false},
}

// sinks warns of values that tenants choose and that reach a dangerous field.
func (p *pod) sinks() {
	for _, field := range slices.Sorted(maps.Keys(p.analyses)) {
		place, inside := strings.CutPrefix(field, p.template.field)
		if !inside {
			continue
		}
		for _, s := range sinks {
			if s.place.MatchString(place) && (!s.own || !p.quiet()) {
				p.reached(field, s, p.analyses[field].Flows)
			}
		}
	}
}

func (c *check) reached(field string, s sink, flows []template.Flow) {
	for _, flow := range flows {
		if !mayChoose(s, flow) {
			continue
		}
		c.add(Finding{
			Severity: Warning, Field: field, Line: flow.Line, Column: flow.Column,
			Message: chooser(flow) + " chooses " + flow.Source + ", and so " + s.what + "; use params or a constant instead",
		})
	}
}

// chooser names who chooses a value.
func chooser(flow template.Flow) string {
	switch root, _, _ := strings.Cut(flow.Source, "."); root {
	case "access", "serviceAccount":
		return "the creator of the access"
	case "namespace":
		return "the owner of the namespace"
	default:
		return "the creator of the claim"
	}
}

// mayChoose reports whether a tenant can select something with a value. Names of claims, and names of objects in
// claims, are safe in a shell, but can select other objects by name.
func mayChoose(s sink, flow template.Flow) bool {
	if !flow.Safe {
		return true
	}
	return s.names && slices.ContainsFunc(chosenNames, func(name string) bool {
		// The API server guarantees the namespace of the claim that is provisioned, but get_pvc takes any namespace.
		return flow.Source == name
	})
}

var chosenNames = []string{
	"pvc.metadata.name", "pvc.spec.volumeName", "pvc.spec.storageClassName",
	"claim.metadata.name", "access.metadata.name", "bucketName", "bucketId", "serviceAccount.name",
	"get_pvc().metadata.name", "get_pvc().metadata.namespace", "get_pvc().spec.volumeName", "get_pvc().spec.storageClassName",
}
