package render

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/lint"
	"github.com/albertofaria/pav/internal/kubectl/source"
)

// given are the objects in the files, by kind; those from flags come first.
type given struct {
	provisioners, claims, classes, attributesClasses, volumes, nodes []object
	snapshots, snapshotContents, snapshotClasses, pavSnapshots       []object
	bucketClaims, namespaces                                         []object
}

// object is an object in a file, as the API server would return it, but without defaults.
type object struct {
	source.Document
}

// where describes the object's place, for messages.
func (o object) where() string {
	line, _ := o.Position("", false, 0, 0)
	return fmt.Sprintf("%s:%d", o.File, line)
}

// findingsError has the mistakes in files.
type findingsError struct{ findings []lint.Finding }

// Error implements error.
func (e *findingsError) Error() string {
	return fmt.Sprintf("%d errors in files", len(e.findings))
}

// read reads the files of flags for one kind, and the files that may contain any kind.
func read(stdin io.Reader, files []string, flags map[string]string) (*given, error) {
	g := &given{}
	for kind, name := range flags {
		if name == "" {
			continue
		}
		documents, err := open(stdin, name)
		if err != nil {
			return nil, err
		}
		before := g.count(kind)
		if err := g.add(documents); err != nil {
			return nil, err
		}
		if g.count(kind) == before {
			return nil, fmt.Errorf("there is no %s in %s", kind, name)
		}
	}
	for _, name := range files {
		documents, err := open(stdin, name)
		if err != nil {
			return nil, err
		}
		if err := g.add(documents); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func open(stdin io.Reader, name string) ([]source.Document, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name its files", name)
	}
	documents, err := source.Open(name, stdin)
	broken, err := source.Errors(err)
	if err != nil {
		return nil, err
	}
	if len(broken) == 0 {
		return documents, nil
	}
	wrong := &findingsError{}
	for _, each := range broken {
		wrong.findings = append(wrong.findings, lint.Broken(each))
	}
	return nil, wrong
}

func (g *given) list(kind string) *[]object {
	switch kind {
	case "PavProvisioner":
		return &g.provisioners
	case "PersistentVolumeClaim":
		return &g.claims
	case "StorageClass":
		return &g.classes
	case "VolumeAttributesClass":
		return &g.attributesClasses
	case "PersistentVolume":
		return &g.volumes
	case "Node":
		return &g.nodes
	case "VolumeSnapshot":
		return &g.snapshots
	case "VolumeSnapshotContent":
		return &g.snapshotContents
	case "VolumeSnapshotClass":
		return &g.snapshotClasses
	case "PavSnapshot":
		return &g.pavSnapshots
	case "ObjectBucketClaim":
		return &g.bucketClaims
	case "Namespace":
		return &g.namespaces
	default:
		return nil
	}
}

func (g *given) count(kind string) int { return len(*g.list(kind)) }

func (g *given) add(documents []source.Document) error {
	for _, d := range documents {
		kind := d.Kind()
		if lint.Is(d) {
			kind = "PavProvisioner"
		}
		list := g.list(kind)
		if list == nil {
			continue
		}
		o := object{d}
		if kind != "PavProvisioner" {
			var err error
			if o.Object, err = canonical(d); err != nil {
				return err
			}
		}
		*list = append(*list, o)
	}
	return nil
}

// canonical returns an object in the API server's form, with canonical quantities in particular.
func canonical(d source.Document) (map[string]any, error) {
	var typed any
	switch d.Kind() {
	case "PersistentVolumeClaim":
		typed = &corev1.PersistentVolumeClaim{}
	case "StorageClass":
		typed = &storagev1.StorageClass{}
	case "VolumeAttributesClass":
		typed = &storagev1.VolumeAttributesClass{}
	case "VolumeSnapshot":
		typed = &snapshotv1.VolumeSnapshot{}
	case "VolumeSnapshotContent":
		typed = &snapshotv1.VolumeSnapshotContent{}
	case "VolumeSnapshotClass":
		typed = &snapshotv1.VolumeSnapshotClass{}
	case "PavSnapshot":
		typed = &pavv1.PavSnapshot{}
	case "PersistentVolume":
		typed = &corev1.PersistentVolume{}
	case "Namespace":
		typed = &corev1.Namespace{}
	case "ObjectBucketClaim":
		return runtime.DeepCopyJSON(d.Object), nil // its fields are checked where it is used
	default:
		typed = &corev1.Node{}
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.Object, typed, true)
	if err != nil {
		return nil, &findingsError{[]lint.Finding{at(d, err)}}
	}
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.File, err)
	}
	prune(plain)
	return plain, nil
}

// prune removes empty fields that Kubernetes' Go types always write.
func prune(plain map[string]any) {
	for key, value := range plain {
		switch value := value.(type) {
		case nil:
			if key == "creationTimestamp" {
				delete(plain, key)
			}
		case map[string]any:
			prune(value)
			if len(value) == 0 && (key == "status" || key == "resources") {
				delete(plain, key)
			}
		case []any:
			for _, item := range value {
				if member, ok := item.(map[string]any); ok {
					prune(member)
				}
			}
		}
	}
}

// provisioner returns the definition to render.
func (g *given) provisioner(name string) (object, error) {
	var names []string
	for _, p := range g.provisioners {
		if name == "" && len(g.provisioners) == 1 || name != "" && p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	switch {
	case len(names) == 0:
		return object{}, errors.New("there is no PavProvisioner in the files")
	case name == "":
		return object{}, fmt.Errorf("there are several PavProvisioners in the files: say which, with --provisioner, of %s", strings.Join(names, ", "))
	default:
		return object{}, fmt.Errorf("there is no PavProvisioner %q in the files, which have %s", name, strings.Join(names, ", "))
	}
}

// misuse is an error for wrong usage, with that exit status.
func misuse(err error) error { return &cli.ExitError{Code: 2, Err: err} }
