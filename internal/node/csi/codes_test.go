package csi

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// wanted repeats the table of codes.go, so that no row changes unnoticed.
var wanted = []struct {
	name string
	err  error
	code codes.Code
}{
	{"stage.ErrBusy", stage.ErrBusy, codes.Aborted},
	{"collect.ErrBusy", collect.ErrBusy, codes.Aborted},
	{"an earlier call publishes", errGoesOn, codes.Aborted},
	{"an earlier call began to publish", errBegun, codes.Aborted},
	{"stage.ErrHeld", stage.ErrHeld, codes.Aborted},
	{"stage.ErrFull", stage.ErrFull, codes.ResourceExhausted},
	{"stage.ErrPending", stage.ErrPending, codes.DeadlineExceeded},
	{"the call's time is over", context.DeadlineExceeded, codes.DeadlineExceeded},
	{"the call was canceled", context.Canceled, codes.Canceled},
	{"stage.ErrFailed", stage.ErrFailed, codes.Internal},
	{"stage.ErrRefused", stage.ErrRefused, codes.FailedPrecondition},
	{"stage.ErrInfeasible", stage.ErrInfeasible, codes.OutOfRange},
	{"stage.ErrExpansion", stage.ErrExpansion, codes.Internal},
	{"stage.ErrNotHere", stage.ErrNotHere, codes.Unavailable},
	{"stage.ErrUnknownVolume", stage.ErrUnknownVolume, codes.NotFound},
	{"stage.ErrNotStaged", stage.ErrNotStaged, codes.FailedPrecondition},
	{"stage.ErrInUse", stage.ErrInUse, codes.FailedPrecondition},
	{"stage.ErrMismatch", stage.ErrMismatch, codes.AlreadyExists},
	{"the call is invalid", errInvalid, codes.InvalidArgument},
	{"pavdir.ErrVolumeID", pavdir.ErrVolumeID, codes.InvalidArgument},
	{"the pod is not PaV's", errForeignPod, codes.PermissionDenied},
	{"pavdir.ErrNoVolume", pavdir.ErrNoVolume, codes.Unavailable},
	{"pavdir.ErrHidden", pavdir.ErrHidden, codes.Unavailable},
	{"pavdir.ErrTorn", pavdir.ErrTorn, codes.Unavailable},
	{"pavdir.ErrLost", pavdir.ErrLost, codes.Unavailable},
	{"mount.ErrHangs", mount.ErrHangs, codes.Aborted},
	{"mount.ErrDead", mount.ErrDead, codes.Unavailable},
	{"mount.ErrOccupied", mount.ErrOccupied, codes.Unavailable},
	{"mount.ErrMismatch", mount.ErrMismatch, codes.Unavailable},
	{"mount.ErrBusyMount", mount.ErrBusyMount, codes.Unavailable},
	{"mount.ErrStillMounted", mount.ErrStillMounted, codes.Unavailable},
	{"mount.ErrStacked", mount.ErrStacked, codes.Unavailable},
	{"mount.ErrNotMounted", mount.ErrNotMounted, codes.Unavailable},
	{"mount.ErrNotShared", mount.ErrNotShared, codes.Unavailable},
	{"mount.ErrNotVolume", mount.ErrNotVolume, codes.Unavailable},
	{"mount.ErrEscapes", mount.ErrEscapes, codes.Unavailable},
	{"mount.ErrNotRegular", mount.ErrNotRegular, codes.Unavailable},
	{"mount.ErrNotDirectory", mount.ErrNotDirectory, codes.Unavailable},
	{"mount.ErrTooMany", mount.ErrTooMany, codes.Unavailable},
	{"mount.ErrTooLarge", mount.ErrTooLarge, codes.Unavailable},
	{"mount.ErrNotUTF8", mount.ErrNotUTF8, codes.Unavailable},
	{"mount.ErrControlCharacter", mount.ErrControlCharacter, codes.Unavailable},
	{"mount.ErrInvalidName", mount.ErrInvalidName, codes.Unavailable},
	{"mount.ErrUnsupported", mount.ErrUnsupported, codes.Unavailable},
	{"mount.ErrNotNamespace", mount.ErrNotNamespace, codes.Unavailable},
	{"mount.ErrPanic", mount.ErrPanic, codes.Unavailable},
}

// errOfNoRow is an error that is not in the table.
var errOfNoRow = errors.New("connection refused")

// Every RPC of both services gets every error of the table: alone, wrapped, and joined to another error.
func TestEveryDomainErrorHasItsCode_InEveryCall_AndKeepsItsMessage(t *testing.T) {
	for call, answer := range answers(t.Context()) {
		for _, row := range wanted {
			for _, err := range []error{row.err, fmt.Errorf("volume %q: %w", "v", row.err), errors.Join(errOfNoRow, row.err)} {
				got := status.Convert(answer(err))
				if got.Code() != row.code {
					t.Errorf("%s, %s: got code %s, want %s", call, row.name, got.Code(), row.code)
				}
				if got.Message() != err.Error() {
					t.Errorf("%s, %s: got the words %q, want %q", call, row.name, got.Message(), err)
				}
				if len(got.Details()) > 0 {
					t.Errorf("%s, %s: has details", call, row.name)
				}
			}
		}
		if got := status.Code(answer(errOfNoRow)); got != codes.Unavailable {
			t.Errorf("%s, an error of no row: got code %s, want Unavailable", call, got)
		}
		if err := answer(nil); err != nil {
			t.Errorf("%s: no error becomes %v", call, err)
		}
	}
	if len(codeTable) != len(wanted) {
		t.Errorf("the table has %d rows, of which %d are tested", len(codeTable), len(wanted))
	}
}

// answers returns a function for each call of both services. It makes the call while the other packages answer with an
// error.
func answers(ctx context.Context) map[string]func(error) error {
	all := map[string]func(error) error{}
	for mode, capability := range map[string]*csi.VolumeCapability{"Filesystem": capability(writer), "Block": device(writer)} {
		for method, do := range calls("id", "/staging", "/target", capability) {
			all[method+" of the mode "+mode] = func(err error) error {
				return do(ctx, &node{driver: "driver", stager: &recorder{err: err}})
			}
		}
	}
	publish := func(w *world) error { return w.publish(ctx, nil) }
	unpublish := func(w *world) error {
		_, err := w.node().NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: "id", TargetPath: "/target"})
		return err
	}
	all["Publish of a stage's /pav"] = func(err error) error {
		w := newWorld()
		w.dirsErr = err
		return publish(w)
	}
	all["Publish of a pod's /pav"] = func(err error) error {
		w := newVolumeWorld()
		w.collector.err = err
		return publish(w)
	}
	all["Unpublish of a stage's /pav"] = func(err error) error {
		w := newWorld()
		w.dirsErr = err
		return unpublish(w)
	}
	all["Unpublish of a pod's /pav"] = func(err error) error {
		w := newVolumeWorld()
		w.collector.err, w.collector.found = err, true
		return unpublish(w)
	}
	return all
}

// An error that one of these packages exports must be in the table, so that its code is chosen and not the default.
func TestEveryExportedDomainErrorHasARow(t *testing.T) {
	var tested []string
	for _, row := range wanted {
		if strings.Contains(row.name, ".Err") {
			tested = append(tested, row.name)
		}
	}
	slices.Sort(tested)
	var exported []string
	for name, directory := range map[string]string{"stage": "../stage", "pavdir": "../pavdir", "collect": "../collect", "mount": "../../mount"} {
		exported = append(exported, exportedErrors(t, name, directory)...)
	}
	slices.Sort(exported)
	if diff := cmp.Diff(exported, tested); diff != "" {
		t.Errorf("errors of the domain against those that are tested (-exported +tested):\n%s", diff)
	}
}

// exportedErrors returns the variables of a package whose names begin with Err, as "package.ErrX".
func exportedErrors(t *testing.T, name, directory string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("parsing package %q: %v", name, err)
		}
		for _, declaration := range file.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.VAR {
				names = append(names, exportedOf(general, name)...)
			}
		}
	}
	if len(names) == 0 {
		t.Fatalf("package %q exports no error", name)
	}
	return names
}

func exportedOf(declaration *ast.GenDecl, name string) []string {
	var names []string
	for _, spec := range declaration.Specs {
		for _, variable := range spec.(*ast.ValueSpec).Names {
			if strings.HasPrefix(variable.Name, "Err") {
				names = append(names, name+"."+variable.Name)
			}
		}
	}
	return names
}

// kubeletGoesOn reports whether kubelet takes a code for "may still be going on", as its isFinalError
// (pkg/volume/csi/csi_client.go) does. After every other code it never calls NodeUnstageVolume.
func kubeletGoesOn(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return true
	default:
		return false
	}
}

func TestErrorsAreFinalOnlyIfNothingIsLeft(t *testing.T) {
	final := map[string]bool{}
	for _, row := range wanted {
		if !kubeletGoesOn(status.Code(toStatus(row.err))) {
			final[row.name] = true
		}
	}
	want := map[string]bool{
		"stage.ErrFailed":        true, // reverted
		"stage.ErrRefused":       true, // nothing done
		"stage.ErrInfeasible":    true, // the pod has ended
		"stage.ErrExpansion":     true, // the same
		"stage.ErrUnknownVolume": true,
		"stage.ErrNotStaged":     true,
		"stage.ErrInUse":         true,
		"stage.ErrMismatch":      true,
		"the call is invalid":    true,
		"pavdir.ErrVolumeID":     true,
		"the pod is not PaV's":   true,
	}
	if diff := cmp.Diff(want, final); diff != "" {
		t.Errorf("final errors (-want +got):\n%s", diff)
	}
}

// An error that says both "it failed" and "it may still be going on" must not be final.
func TestAnErrorThatMayLeaveWorkOutweighsAFinalError(t *testing.T) {
	for _, open := range ofWork {
		for _, final := range ofWork {
			if !kubeletGoesOn(open.code) || kubeletGoesOn(final.code) {
				continue
			}
			for _, err := range []error{errors.Join(final.err, open.err), fmt.Errorf("%w: %w", final.err, open.err)} {
				if code := status.Code(toStatus(err)); !kubeletGoesOn(code) {
					t.Errorf("%q has the final code %s", err, code)
				}
			}
		}
	}
}

// An error of package mount is the cause of a failure that is reverted. It does not make that failure less final.
func TestACauseDoesNotOutweighTheErrorThatWrapsIt(t *testing.T) {
	for _, reason := range ofEffects {
		if kubeletGoesOn(status.Code(toStatus(fmt.Errorf("%w: %w", stage.ErrFailed, reason.err)))) {
			t.Errorf("a failure because of %q is not final", reason.err)
		}
	}
}
