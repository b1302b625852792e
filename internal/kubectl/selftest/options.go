package selftest

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// defaultImage has a shell and the few commands that the test's pods use.
const defaultImage = "busybox:1.37.0"

// options are the values of the flags.
type options struct {
	Output cli.Output

	Provisioner        string
	Name               string
	Parameters         map[string]string
	WithObjects        bool
	OpenNamespace      bool
	VolumeMode         string
	AccessMode         string
	Size               string
	Handle             string
	RequirePersistence bool
	Timeout            time.Duration
	Keep               bool
	Image              string
	User               int64
	FSGroup            int64

	size      resource.Quantity
	sizeGiven bool
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Provisioner, "provisioner", "", "name of the PavProvisioner to test, if the files have several")
	flags.StringVar(&o.Name, "name", "", "name of the copy, its StorageClass and its namespace (default: made up)")
	flags.StringToStringVar(&o.Parameters, "param", nil, "parameter of the StorageClass, key=value; may be repeated")
	flags.BoolVar(&o.WithObjects, "with-objects", false, "create the other objects of the files too, such as Secrets; those that exist are used as they are")
	flags.BoolVar(&o.OpenNamespace, "open-namespace", false, "let templates place their pods in the namespace of the test, where its claims are")
	flags.StringVar(&o.VolumeMode, "volume-mode", "", "test Filesystem or Block only (default: all that the definition supports)")
	flags.StringVar(&o.AccessMode, "access-mode", "", "access mode of the volumes (default: the first that the definition supports of ReadWriteMany, ReadWriteOnce, ReadOnlyMany)")
	flags.StringVar(&o.Size, "size", "64Mi", "capacity that claims request, unless a claim in the files sets it")
	flags.StringVar(&o.Handle, "handle", "", "handle of a volume that exists, to test static provisioning with; a file is written to it and removed, a device is only read")
	flags.BoolVar(&o.RequirePersistence, "require-persistence", false, "fail if the data is missing on another node")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long a step may take; those that wait for pods to end may take two minutes more, as kubelet does")
	flags.BoolVar(&o.Keep, "keep", false, "do not clean up at the end")
	flags.StringVar(&o.Image, "image", defaultImage, "image of the pods that use the volumes; it needs sh, head, dd, sha256sum and yes")
	flags.Int64Var(&o.User, "user", 0, "user that these pods run as; others than root pass the restricted Pod Security profile")
	flags.Int64Var(&o.FSGroup, "fs-group", -1, "fsGroup of these pods (default: none)")
	o.Output.AddFlag(flags)
}

// complete checks the options, and fills in what follows from them.
func (o *options) complete(provisioner string, sizeGiven bool) error {
	size, err := resource.ParseQuantity(o.Size)
	if err != nil || size.Sign() <= 0 {
		return fmt.Errorf("--size: %q is not a capacity", o.Size)
	}
	o.size, o.sizeGiven = size, sizeGiven
	if o.VolumeMode != "" && !slices.Contains(VolumeModes(), o.VolumeMode) {
		return fmt.Errorf("--volume-mode: %q is not one of %v", o.VolumeMode, VolumeModes())
	}
	if o.AccessMode != "" && !slices.Contains(AccessModes(), o.AccessMode) {
		return fmt.Errorf("--access-mode: %q is not one of %v", o.AccessMode, AccessModes())
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout: must be above 0")
	}
	if o.Name == "" {
		o.Name = madeUp(provisioner)
	}
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return fmt.Errorf("--name: %q must be a DNS label: %s", o.Name, problems[0])
	}
	return nil
}

// madeUp returns a unique name that contains the provisioner's name.
func madeUp(provisioner string) string {
	suffix := "-test-" + rand.String(5)
	provisioner = provisioner[:min(len(provisioner), validation.DNS1123LabelMaxLength-len(suffix))]
	if len(validation.IsDNS1123Label(provisioner)) > 0 {
		return "pav" + suffix
	}
	return provisioner + suffix
}

// VolumeModes are the values of --volume-mode.
func VolumeModes() []string {
	return []string{string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)}
}

// AccessModes are the values of --access-mode.
func AccessModes() []string {
	return []string{string(corev1.ReadWriteMany), string(corev1.ReadWriteOnce), string(corev1.ReadOnlyMany), string(corev1.ReadWriteOncePod)}
}

func (o *options) volumeModes() []corev1.PersistentVolumeMode {
	if o.VolumeMode != "" {
		return []corev1.PersistentVolumeMode{corev1.PersistentVolumeMode(o.VolumeMode)}
	}
	return []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock}
}

func (o *options) accessModes() []corev1.PersistentVolumeAccessMode {
	if o.AccessMode != "" {
		return []corev1.PersistentVolumeAccessMode{corev1.PersistentVolumeAccessMode(o.AccessMode)}
	}
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadOnlyMany}
}
