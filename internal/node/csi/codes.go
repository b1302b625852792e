package csi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// table maps errors of the domain to codes. What matters is what kubelet makes of a code: it takes
// Canceled, DeadlineExceeded, Unavailable, ResourceExhausted and Aborted for "may still be going on",
// so it calls again, and calls NodeUnstageVolume if the pod goes. Every other code is final: it takes
// the volume for not staged and never calls NodeUnstageVolume. So only what has left nothing behind
// may have a final code.
var table = []struct {
	err  error
	code codes.Code
}{
	{stage.ErrBusy, codes.Aborted},                     // CSI: "an operation is pending on the volume"
	{collect.ErrBusy, codes.Aborted},                   // likewise
	{stage.ErrHeld, codes.Aborted},                     // another node has to let go first; kubelet is to ask again
	{stage.ErrPending, codes.DeadlineExceeded},         // a workflow pod may still run
	{context.DeadlineExceeded, codes.DeadlineExceeded}, // likewise
	{context.Canceled, codes.Canceled},                 // likewise
	{stage.ErrFailed, codes.Internal},                  // final: the unstaging pod has succeeded
	{stage.ErrRefused, codes.FailedPrecondition},       // final: no pod was created
	{stage.ErrUnknownVolume, codes.NotFound},           // final, CSI: "Volume does not exist"
	{stage.ErrNotStaged, codes.FailedPrecondition},     // final, CSI: "must be staged first"; nothing was mounted
	{stage.ErrMismatch, codes.AlreadyExists},           // final, CSI: "Volume published but is incompatible"
	{errInvalid, codes.InvalidArgument},                // final, CSI: a field is missing or wrong
	{pavdir.ErrVolumeID, codes.InvalidArgument},        // final: nothing was mounted
	{errForeignPod, codes.PermissionDenied},            // final: nothing was mounted
}

var (
	// errInvalid is wrapped where a call lacks a field, or asks for what cannot be.
	errInvalid = errors.New("invalid call")

	// errForeignPod is wrapped where /pav is asked for by a pod that PaV did not make.
	errForeignPod = errors.New("the volume is only for pods that PaV makes")
)

// toStatus returns the gRPC status for an error of the domain. What is in no row, such as an API
// server that does not answer, says nothing about what has been done so far, and so is not final.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, row := range table {
		if errors.Is(err, row.err) {
			return status.Error(row.code, err.Error())
		}
	}
	return status.Error(codes.Unavailable, err.Error())
}
