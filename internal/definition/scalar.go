package definition

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	portType     = reflect.TypeFor[intstr.IntOrString]()
	timeType     = reflect.TypeFor[metav1.Time]()
	durationType = reflect.TypeFor[metav1.Duration]()
	fieldsType   = reflect.TypeFor[metav1.FieldsV1]()
)

// enums are the allowed values of string types that have a fixed set of values.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[pavv1.ProvisioningMode]():            texts(pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic),
	reflect.TypeFor[pavv1.StagingScope]():                texts(pavv1.StagingScopeNode, pavv1.StagingScopePod),
	reflect.TypeFor[pavv1.StagingRecovery]():             texts(pavv1.StagingRecoveryRestage, pavv1.StagingRecoveryNone),
	reflect.TypeFor[pavv1.StagingRotation]():             texts(pavv1.RotationKeep, pavv1.RotationRestage),
	reflect.TypeFor[pavv1.DataSourceKind]():              texts(pavv1.DataSourceSnapshot, pavv1.DataSourceClaim),
	reflect.TypeFor[pavv1.SnapshotWhileStaged]():         texts(pavv1.SnapshotAllow, pavv1.SnapshotSync, pavv1.SnapshotWait),
	reflect.TypeFor[pavv1.BucketProtocol]():              texts(pavv1.ProtocolS3, pavv1.ProtocolAzure, pavv1.ProtocolGCS),
	reflect.TypeFor[pavv1.AuthenticationType]():          texts(pavv1.AuthenticationKey, pavv1.AuthenticationServiceAccount),
	reflect.TypeFor[pavv1.BucketAccessMode]():            texts(pavv1.AccessReadWrite, pavv1.AccessReadOnly, pavv1.AccessWriteOnly),
	reflect.TypeFor[pavv1.RequestedNames]():              texts(pavv1.RequestedNamesAllow, pavv1.RequestedNamesRefuse),
	reflect.TypeFor[pavv1.UnclaimedBuckets]():            texts(pavv1.UnclaimedRefuse, pavv1.UnclaimedFirstClaim),
	reflect.TypeFor[addressingStyle]():                   workflow.AddressingStyles(),
	reflect.TypeFor[storagev1.FSGroupPolicy]():           texts(storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy),
	reflect.TypeFor[corev1.RestartPolicy]():              texts(corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways),
	reflect.TypeFor[corev1.PullPolicy]():                 texts(corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever),
	reflect.TypeFor[corev1.DNSPolicy]():                  texts(corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone),
	reflect.TypeFor[corev1.TerminationMessagePolicy]():   texts(corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError),
	reflect.TypeFor[corev1.MountPropagationMode]():       texts(corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional),
	reflect.TypeFor[corev1.Protocol]():                   texts(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
	reflect.TypeFor[corev1.TolerationOperator]():         texts(corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpLt, corev1.TolerationOpGt),
	reflect.TypeFor[corev1.TaintEffect]():                texts(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
	reflect.TypeFor[corev1.NodeSelectorOperator]():       texts(corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt),
	reflect.TypeFor[corev1.PersistentVolumeMode]():       texts(corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock),
	reflect.TypeFor[corev1.PersistentVolumeAccessMode](): texts(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod),
	reflect.TypeFor[corev1.HostPathType](): texts(corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
		corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev),
}

func texts[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// isScalar reports whether values of a type are scalars in JSON, whatever their Go type is.
func isScalar(typ reflect.Type) bool {
	switch typ {
	case quantityType, portType, timeType, durationType:
		return true
	case fieldsType:
		return false
	}
	switch typ.Kind() {
	case reflect.Slice:
		return typ.Elem().Kind() == reflect.Uint8
	case reflect.Map, reflect.Struct, reflect.Interface:
		return false
	default:
		return true
	}
}

// takesText reports whether a string can be a value of the type.
func takesText(typ reflect.Type) bool {
	switch {
	case typ == quantityType, typ == portType, typ == timeType, typ == durationType, typ == templateType:
		return true
	case typ.Kind() == reflect.Slice:
		return isScalar(typ)
	default:
		return typ.Kind() == reflect.String || typ.Kind() == reflect.Interface
	}
}

// scalar checks a value that is not a template. The type is one for which isScalar is true.
func (w *walker) scalar(field string, typ reflect.Type, value any) (any, bool) {
	if !fits(typ, value) {
		w.wrongType(field, typ, value)
		return nil, false
	}
	text, isText := value.(string)
	switch known := enums[typ]; {
	case typ == quantityType:
		if !w.quantity(field, value) {
			return nil, false
		}
	case known != nil && text != "" && !slices.Contains(known, text):
		w.notOneOf(field, text, known)
		return nil, false
	case typ == timeType && isText:
		if json.Unmarshal([]byte(fmt.Sprintf("%q", text)), &metav1.Time{}) != nil {
			w.check.errorf(field, "must be a time such as 2006-01-02T15:04:05Z")
			return nil, false
		}
	case typ == durationType && isText:
		if _, err := time.ParseDuration(text); err != nil {
			w.check.errorf(field, "%s is not a duration such as 720h or 30m%s", quote(text), noTemplate(text))
			return nil, false
		}
	}
	return value, true
}

// notOneOf reports a string that is not one of the allowed values.
func (w *walker) notOneOf(field, text string, known []string) {
	var hint string
	if near := Nearest(text, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	} else {
		hint = noTemplate(text)
	}
	w.check.errorf(field, "%s is not one of %s%s", quote(text), strings.Join(known, ", "), hint)
}

// noTemplate returns what to add to a message about a text of a field that cannot be a template.
func noTemplate(text string) string {
	if template.HasTemplate(text) {
		return "; this field cannot be a template"
	}
	return ""
}

// fits reports whether a value's kind is that of the type.
func fits(typ reflect.Type, value any) bool {
	_, isText := value.(string)
	_, isInteger := integer(value)
	switch kind := typ.Kind(); {
	case typ == portType:
		return isText || isInteger && inRange(reflect.TypeFor[int32](), value)
	case typ == quantityType:
		return isText || isNumber(value)
	case takesText(typ):
		return isText
	case kind == reflect.Bool:
		_, isBool := value.(bool)
		return isBool
	case kind == reflect.Float32 || kind == reflect.Float64:
		return isNumber(value)
	default:
		return isInteger && inRange(typ, value)
	}
}

func isNumber(value any) bool {
	switch value.(type) {
	case int64, float64:
		return true
	default:
		return false
	}
}

// integer returns a number as an integer, if it is one.
func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<63
	default:
		return 0, false
	}
}

func inRange(typ reflect.Type, value any) bool {
	number, _ := integer(value)
	switch typ.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return number >= 0
	default:
		return !reflect.Zero(typ).OverflowInt(number)
	}
}

// hugeExponent matches exponents with which arithmetic on a quantity would take forever.
var hugeExponent = regexp.MustCompile(`[eE][-+]?[0-9]{3}`)

// quantity reports whether a string or a number is a valid quantity.
func (w *walker) quantity(field string, value any) bool {
	text := fmt.Sprint(value)
	const longest = 64
	if len(text) <= longest && !hugeExponent.MatchString(text) {
		if _, err := resource.ParseQuantity(text); err == nil {
			return true
		}
	}
	w.check.errorf(field, "%s is not a quantity such as 10Gi, 500m or 2", quote(text))
	return false
}

// wrongType reports a value that is not a template and does not have the type of its field.
func (w *walker) wrongType(field string, typ reflect.Type, value any) {
	w.check.errorf(field, "must be %s, not %s%s", noun(typ), describe(value), remedy(typ, value))
}

// remedy returns how to fix a common mistake in the type of a value; "" for other mistakes.
func remedy(typ reflect.Type, value any) string {
	want := noun(typ)
	switch v := value.(type) {
	case string:
		if parsed := parseScalar(v); isScalar(typ) && parsed != nil && fits(typ, parsed) {
			return ": leave out the quotes"
		}
	case map[string]any:
		if want == "a list" {
			return `: begin each item with "- "`
		}
	case []any:
		if want == "a mapping" {
			return `: leave out the "- "`
		}
	default:
		if want == "a string" {
			return ": put it in quotes"
		}
		if want == "an integer" && isNumber(value) {
			return fmt.Sprintf(" of %d bits", typ.Bits())
		}
	}
	return ""
}

func parseScalar(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	return value
}

// noun names a type.
func noun(typ reflect.Type) string {
	switch kind := typ.Kind(); {
	case typ == portType:
		return "an integer or a string"
	case typ == quantityType:
		return "a quantity such as 10Gi"
	case typ == durationType:
		return "a duration such as 720h"
	case takesText(typ):
		return "a string"
	case kind == reflect.Slice:
		return "a list"
	case kind == reflect.Map, kind == reflect.Struct:
		return "a mapping"
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.Float32, kind == reflect.Float64:
		return "a number"
	default:
		return "an integer"
	}
}

// describe names a value for a message. Numbers and booleans are short enough to be shown.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}

// quote returns a text in quotes, cut to a length that fits in a message.
func quote(text string) string {
	const longest = 64
	if len(text) > longest {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:longest], ""))
	}
	return fmt.Sprintf("%q", text)
}
