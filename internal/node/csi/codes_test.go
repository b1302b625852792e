package csi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// wanted is the table of codes.go once more, so that no row changes unseen.
var wanted = []struct {
	name string
	err  error
	code codes.Code
}{
	{"another operation on the volume is going on", stage.ErrBusy, codes.Aborted},
	{"another call for a pod's /pav is going on", collect.ErrBusy, codes.Aborted},
	{"another node has the volume", stage.ErrHeld, codes.Aborted},
	{"a workflow pod may still run", stage.ErrPending, codes.DeadlineExceeded},
	{"the call's time is over", context.DeadlineExceeded, codes.DeadlineExceeded},
	{"the call was canceled", context.Canceled, codes.Canceled},
	{"staging failed and is reverted", stage.ErrFailed, codes.Internal},
	{"the volume cannot be staged as it is defined", stage.ErrRefused, codes.FailedPrecondition},
	{"there is no such volume", stage.ErrUnknownVolume, codes.NotFound},
	{"the volume is not staged", stage.ErrNotStaged, codes.FailedPrecondition},
	{"the target is published in another way", stage.ErrMismatch, codes.AlreadyExists},
	{"the call is invalid", errInvalid, codes.InvalidArgument},
	{"the ID of a pod's /pav is not kubelet's", pavdir.ErrVolumeID, codes.InvalidArgument},
	{"the pod is not PaV's", errForeignPod, codes.PermissionDenied},
	{"the API server does not answer", errors.New("connection refused"), codes.Unavailable},
}

func TestEveryErrorOfTheDomainHasItsCode_AndKeepsItsWords(t *testing.T) {
	for _, row := range wanted {
		t.Run(row.name, func(t *testing.T) {
			for _, err := range []error{row.err, fmt.Errorf("volume %q: %w", "v", row.err), errors.Join(errors.New("other"), row.err)} {
				got := toStatus(err)
				if status.Code(got) != row.code {
					t.Errorf("%v: got code %s, want %s", err, status.Code(got), row.code)
				}
				if words := status.Convert(got).Message(); words != err.Error() {
					t.Errorf("got the words %q, want %q", words, err)
				}
			}
		})
	}
	if err := toStatus(nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
	if len(table) != len(wanted)-1 {
		t.Errorf("the table has %d rows, of which %d are tested", len(table), len(wanted)-1)
	}
}

// kubeletGoesOn says what kubelet takes for "may still be going on", by its isFinalError
// (pkg/volume/csi/csi_client.go). After every other code it never calls NodeUnstageVolume.
func kubeletGoesOn(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return true
	default:
		return false
	}
}

func TestOnlyWhatLeftNothingBehindIsFinal(t *testing.T) {
	final := map[string]bool{}
	for _, row := range wanted {
		if !kubeletGoesOn(status.Code(toStatus(row.err))) {
			final[row.name] = true
		}
	}
	want := map[string]bool{
		"staging failed and is reverted":               true,
		"the volume cannot be staged as it is defined": true,
		"there is no such volume":                      true,
		"the volume is not staged":                     true,
		"the target is published in another way":       true,
		"the call is invalid":                          true,
		"the ID of a pod's /pav is not kubelet's":      true,
		"the pod is not PaV's":                         true,
	}
	if diff := cmp.Diff(want, final); diff != "" {
		t.Errorf("final errors (-want +got):\n%s", diff)
	}
}

// An error that says both "it failed" and "it may still be going on" must not be final.
func TestWhatMayStillBeGoingOnOutweighsAFinalError(t *testing.T) {
	for _, open := range table {
		for _, final := range table {
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
