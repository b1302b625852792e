package bundle

import (
	"cmp"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
)

// Removed replaces what may be secret.
const Removed = "(removed)"

// mode says what becomes of the values in a part of an object.
type mode int

const (
	keep   mode = iota // values are kept
	strict             // in a definition or a pod: of texts, only those of known fields are kept
	names              // texts are kept, as in labels, in a part that is strict otherwise
	text               // values are removed, and their lines are searched for elsewhere: commands, arguments and logs
	secret             // values are removed, and are searched for elsewhere
)

// modes are the fields whose values are removed wherever they are, and those that are strict.
var modes = map[string]mode{
	"command": text, "args": text, "httpGet": text, "log": text,
	"value": secret, "volumeAttributes": secret, "parameters": secret, "params": secret, "mountOptions": secret, "options": secret,
	"additionalConfig": secret, "info": secret, "extraInfo": secret, "store": secret, // of a bucket: they are parameters, too
	"httpHeaders": secret, "data": secret, "stringData": secret, "binaryData": secret,
	"podTemplate": strict, "definition": strict,
}

// strictSpecs are the kinds whose whole spec is strict.
var strictSpecs = map[string]bool{"PavProvisioner": true, "Pod": true, "Deployment": true, "DaemonSet": true}

// known are the fields whose texts are kept in a definition or a pod.
var known = set(`
	accessModes add allowedClaimNamespaces apiVersion capacity claimName configMapName containerName devicePath divisor dnsPolicy driver
	drop effect fieldPath fsGroupChangePolicy fsGroupPolicy fsType handle image imagePullPolicy key kind level maxCapacity maxSurge
	maxUnavailable medium minCapacity mountPath mountPropagation name namespace nodeName operator path preemptionPolicy
	priorityClassName procMount protocol provisioningModes recovery resource resourceClaimName restartPolicy runtimeClassName
	schedulerName scope secretName serviceAccount serviceAccountName sizeLimit storageClassName subPath terminationMessagePath
	terminationMessagePolicy topologyKey type uid values volumeMode volumeModes whenUnsatisfiable`)

// trees are the fields below which all texts are kept, in a definition or a pod.
var trees = set(`accessibleTopology labels limits matchLabels nodeSelector requests`)

// knownAnnotations are PaV's own that refer to objects and attempts.
var knownAnnotations = map[string]bool{
	pavv1.VolumeAnnotation: true, pavv1.SnapshotAnnotation: true, pavv1.HandleAnnotation: true, pavv1.NodeAnnotation: true,
	pavv1.AttemptAnnotation: true, pavv1.RetryAnnotation: true, pavv1.GivenAnnotation: true,
	pavv1.BucketAnnotation: true, pavv1.AccessAnnotation: true, pavv1.RotateAnnotation: true,
}

func set(words string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

// cleaner removes values from objects, and remembers them.
type cleaner struct {
	agents bool // the object is of PaV's agents

	removed, kept map[string]bool
}

func newCleaner() *cleaner {
	return &cleaner{removed: map[string]bool{}, kept: map[string]bool{}}
}

// object returns an object without what may be secret.
func (c *cleaner) object(object client.Object, of *Objects) (any, error) {
	decoded, err := plain(object)
	if err != nil {
		return nil, err
	}
	fields, ok := decoded.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("encoding %T: it is no object", object)
	}
	c.agents = of.Agents
	cleaned := map[string]any{}
	for key, value := range fields {
		m := keep
		if key == "spec" && strictSpecs[of.Kind.Kind] {
			m = strict
		}
		cleaned[key] = c.field(key, value, m)
	}
	cleaned["apiVersion"], cleaned["kind"] = of.Kind.ToAPIVersionAndKind()
	return cleaned, nil
}

// field returns the value of a field without what may be secret. The mode is that of the object which has the field.
func (c *cleaner) field(key string, value any, m mode) any {
	if own, is := modes[key]; is && m < text {
		m = own
	}
	if m == strict && trees[key] {
		m = names
	}
	switch value := value.(type) {
	case map[string]any:
		if key == "annotations" {
			return c.annotations(value)
		}
		return c.fields(key, value, m)
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = c.field(key, value[i], m)
		}
		return list
	case string:
		if m >= text || m == strict && !known[key] {
			c.remove(value, m)
			return Removed
		}
		if !isMessage[key] {
			c.kept[value] = true
		}
	case float64:
		if m >= text {
			return Removed
		}
	}
	return value
}

// fields returns an object, which is the value of a field, without what may be secret.
func (c *cleaner) fields(of string, object map[string]any, m mode) map[string]any {
	cleaned := map[string]any{}
	for key, value := range object {
		switch {
		case key == "managedFields":
		case of == "terminated" && key == "message": // the end of the container's log
			cleaned[key] = c.field(key, value, text)
		case key == "args" && c.agents && (object["name"] == agent.Controller || object["name"] == agent.Node):
			cleaned[key] = value
		default:
			cleaned[key] = c.field(key, value, m)
		}
	}
	return cleaned
}

// annotations returns annotations, of which only some of PaV's have their values.
func (c *cleaner) annotations(all map[string]any) map[string]any {
	cleaned := map[string]any{}
	for key, value := range all {
		if knownAnnotations[key] {
			cleaned[key] = c.field(key, value, keep)
		} else {
			cleaned[key] = c.field(key, value, secret)
		}
	}
	return cleaned
}

// The sizes of the values that are searched for. Shorter ones are words as well.
const (
	minSecret = 8
	maxSecret = 1 << 10
)

// remove remembers a value that was removed. A template, and the paths of each workflow pod, are no secrets.
func (c *cleaner) remove(value string, m mode) {
	if strings.Contains(value, "{{") || strings.Contains(value, "{%") || strings.HasPrefix(value, "/pav") {
		return
	}
	parts := []string{value}
	if m == secret {
		_, after, _ := strings.Cut(value, "=") // as in the mount option password=…
		parts = append(parts, after)
	} else {
		parts = append(parts, strings.Split(value, "\n")...) // a runtime may quote a part of a script
	}
	for _, part := range parts {
		if part = strings.TrimSpace(part); len(part) >= minSecret && len(part) <= maxSecret {
			c.removed[part] = true
		}
	}
}

// compareLength orders texts, the longest first.
func compareLength(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
