package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestClaim_OfACopy(t *testing.T) {
	r := newRun(t, provisionerYAML+usageYAML, nil)
	r.input.claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "of-the-files"}
	empty := r.claim(volume{mode: corev1.PersistentVolumeFilesystem, access: corev1.ReadWriteOnce})
	if empty.Spec.DataSource != nil || empty.Spec.DataSourceRef != nil {
		t.Errorf("the claim has a source: %+v", empty.Spec)
	}
	for kind, want := range map[pavv1.DataSourceKind]struct{ name, text, group string }{
		pavv1.DataSourceClaim:    {"filesystem-clone", "Filesystem, ReadWriteOnce, cloned", ""},
		pavv1.DataSourceSnapshot: {"filesystem-restored", "Filesystem, ReadWriteOnce, restored", snapshotv1.GroupName},
	} {
		v := volume{mode: corev1.PersistentVolumeFilesystem, access: corev1.ReadWriteOnce, source: kind, least: new(resource.MustParse("1Gi"))}
		claim := r.claim(v)
		ref, group := claim.Spec.DataSourceRef, ""
		if ref.APIGroup != nil {
			group = *ref.APIGroup
		}
		if claim.Name != want.name || v.String() != want.text || ref.Kind != string(kind) || ref.Name != "filesystem" || group != want.group {
			t.Errorf("of %s: %q, %s, %+v", kind, v, claim.Name, ref)
		}
		if size := claim.Spec.Resources.Requests.Storage().String(); size != "1Gi" {
			t.Errorf("of %s: the claim requests %s", kind, size)
		}
	}
}

// The scripts find out whether a copy has the data, and change it.
func TestScripts_OfCopies(t *testing.T) {
	const token, size = "written by the test", 1000
	data := strings.Repeat(token+"\n", size)[:size]
	for name, test := range map[string]struct {
		script, content string
		missing         bool
		code            int
	}{
		"a file":                  {script: changeFile, content: data},
		"no file":                 {script: changeFile, missing: true, code: exitMissing},
		"another file":            {script: changeFile, content: "x", code: exitCorrupt},
		"a device":                {script: changeDevice, content: data},
		"a device that has other": {script: changeDevice, content: strings.Repeat("x", size), code: exitMissing},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			file := filepath.Join(directory, "file")
			if !test.missing {
				if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := directory
			if test.script == changeDevice {
				path = file
			}
			script := strings.ReplaceAll(common+test.script, "/dev/termination-log", filepath.Join(t.TempDir(), "log"))
			command := exec.CommandContext(t.Context(), "sh", "-c", script)
			command.Env = append(os.Environ(), "FILE=file", "VOLUME="+path, "TOKEN="+token, fmt.Sprint("BYTES=", size))
			out, err := command.CombinedOutput()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code, err = exit.ExitCode(), nil
			}
			after, _ := os.ReadFile(file)
			if err != nil || code != test.code || code == 0 && string(after) == test.content {
				t.Errorf("exit code %d, want %d, %v: %s; the file has %q", code, test.code, err, out, after)
			}
		})
	}
}

// snapshotting gives a scenario a cluster that answers the creation of a VolumeSnapshot by the function.
func snapshotting(t *testing.T, create func(*snapshotv1.VolumeSnapshot), timeout time.Duration) (context.Context, *scenario) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(snapshotv1.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	r := newRun(t, provisionerYAML, nil)
	r.client = fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&snapshotv1.VolumeSnapshot{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if create == nil {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "VolumeSnapshotClass"}}
			}
			if snapshot, ok := object.(*snapshotv1.VolumeSnapshot); ok {
				create(snapshot)
			}
			return c.Create(ctx, object, options...)
		}}).Build()
	r.progress, r.troubles = &progress{out: io.Discard}, &troubles{client: r.client, provisioner: r.name, reported: map[string]bool{}}
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, errTimeout)
	t.Cleanup(cancel)
	return ctx, &scenario{run: r, volume: volume{mode: corev1.PersistentVolumeFilesystem, access: corev1.ReadWriteOnce}}
}

func TestMakeSnapshot(t *testing.T) {
	ctx, s := snapshotting(t, func(snapshot *snapshotv1.VolumeSnapshot) {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(true), RestoreSize: new(resource.MustParse("2Gi"))}
	}, time.Minute)
	found, err := s.makeSnapshot(ctx)
	if err != nil || found.result != Passed || !s.snapshotted || s.size.String() != "2Gi" || len(s.created) != 1 {
		t.Errorf("got %+v, %v; size %s, created %v", found, err, s.size, s.created)
	}
	if err := errors.Join(s.deleteSnapshots(ctx), s.awaitSnapshots(ctx)); err != nil {
		t.Errorf("deleting it: %v", err)
	}
	ctx, s = snapshotting(t, nil, time.Minute)
	if found, err := s.makeSnapshot(ctx); err != nil || found.result != Skipped || s.snapshotted || s.snapshots {
		t.Errorf("in a cluster without snapshots: got %+v, %v", found, err)
	}
	for want, status := range map[string]*snapshotv1.VolumeSnapshotStatus{
		"snapshot-controller may not be running": nil,
		"no room":                                {Error: &snapshotv1.VolumeSnapshotError{Message: new("no room")}},
	} {
		ctx, s = snapshotting(t, func(snapshot *snapshotv1.VolumeSnapshot) { snapshot.Status = status }, 100*time.Millisecond)
		if _, err := s.makeSnapshot(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Only volumes that keep what is written are copied.
func TestCopies_WithoutData_MakesNone(t *testing.T) {
	copying := strings.Replace(provisionerYAML, "spec:\n", "spec:\n  volumeCreation: {dataSources: [PersistentVolumeClaim]}\n", 1)
	for name, s := range map[string]scenario{
		"it lost the data":  {volume: volume{access: corev1.ReadWriteOnce}},
		"it is not written": {volume: volume{access: corev1.ReadOnlyMany}, kept: true},
		"it is static":      {volume: volume{access: corev1.ReadWriteOnce, static: "h"}, kept: true},
	} {
		s.run = newRun(t, copying, nil)
		if !s.copies(t.Context()) || len(s.report.Steps) > 0 {
			t.Errorf("%s: steps %v", name, s.report.Steps)
		}
	}
}
