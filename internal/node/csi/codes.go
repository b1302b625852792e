package csi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// codeTable maps errors of the domain to codes. What matters is what kubelet makes of a code: it takes
// Canceled, DeadlineExceeded, Unavailable, ResourceExhausted and Aborted for "may still be going on",
// so it calls again, and calls NodeUnstageVolume or NodeUnpublishVolume if the pod goes. Every other
// code is final: it takes the volume for not staged, or not published, and never calls those. So only
// what has left nothing behind may have a final code.
//
// The first row that an error is, counts: that something may still be going on outweighs all else.
var codeTable = append(ofWork, ofEffects...)

type codeRow struct {
	err  error
	code codes.Code
}

// ofWork are the errors that say how far the work is.
var ofWork = []codeRow{
	{stage.ErrBusy, codes.Aborted},                     // CSI: "an operation is pending on the volume"
	{collect.ErrBusy, codes.Aborted},                   // the same
	{errGoesOn, codes.Aborted},                         // kubelet calls again
	{errBegun, codes.Aborted},                          // kubelet is to unpublish what an earlier call has begun to publish
	{stage.ErrHeld, codes.Aborted},                     // another node has to let go first; kubelet is to ask again
	{stage.ErrFull, codes.ResourceExhausted},           // a pod has to end first; the stage is on record
	{stage.ErrPending, codes.DeadlineExceeded},         // a workflow pod may still run
	{stage.ErrNotHere, codes.Unavailable},              // kubelet stages the volume first, or its PavStage comes back
	{context.DeadlineExceeded, codes.DeadlineExceeded}, // the same
	{context.Canceled, codes.Canceled},                 // the same
	{stage.ErrFailed, codes.Internal},                  // final: the unstaging pod has succeeded
	{stage.ErrRefused, codes.FailedPrecondition},       // final: no pod was created
	{stage.ErrInfeasible, codes.OutOfRange},            // final for this capacity, CSI: "Unsupported capacity_range"
	{stage.ErrExpansion, codes.Internal},               // final: the pod has ended
	{stage.ErrUnknownVolume, codes.NotFound},           // final, CSI: "Volume does not exist"
	{stage.ErrNotStaged, codes.FailedPrecondition},     // final, CSI: "must be staged first"; nothing was mounted
	{stage.ErrInUse, codes.FailedPrecondition},         // final, CSI: "Exceeds capabilities", of a single writer; nothing was mounted
	{stage.ErrMismatch, codes.AlreadyExists},           // final, CSI: "Volume published but is incompatible"; that one stays
	{errInvalid, codes.InvalidArgument},                // final, CSI: a field is missing or wrong
	{pavdir.ErrVolumeID, codes.InvalidArgument},        // final: nothing was mounted
	{errForeignPod, codes.PermissionDenied},            // final: nothing was mounted
}

// ofEffects are the errors of mounts and directories that the domain passes on. They say what went
// wrong, but not what was done before, so none is final; those of ofWork, where one is joined, say that.
var ofEffects = []codeRow{
	{pavdir.ErrNoVolume, codes.Unavailable},        // the stage makes a failure of it, which is reverted
	{pavdir.ErrHidden, codes.Unavailable},          // until kubelet has unmounted /pav from another pod
	{pavdir.ErrTorn, codes.Unavailable},            // the record is written again from the PavStage
	{pavdir.ErrLost, codes.Unavailable},            // what the pod left is recorded as lost
	{mount.ErrHangs, codes.Aborted},                // CSI: "an operation is pending on the volume"
	{mount.ErrDead, codes.Unavailable},             // the stage is made again, or is unstaged
	{mount.ErrOccupied, codes.Unavailable},         // another mount is in the way, and can be removed
	{mount.ErrMismatch, codes.Unavailable},         // a target of the other kind is in the way
	{mount.ErrBusyMount, codes.Unavailable},        // a mount is in the way
	{mount.ErrStillMounted, codes.Unavailable},     // the unmount may yet come to pass
	{mount.ErrStacked, codes.Unavailable},          // the same
	{mount.ErrNotMounted, codes.Unavailable},       // it was unmounted by hand
	{mount.ErrNotShared, codes.Unavailable},        // someone has changed the mount's propagation
	{mount.ErrNotVolume, codes.Unavailable},        // a pod changes /pav meanwhile
	{mount.ErrEscapes, codes.Unavailable},          // the same
	{mount.ErrNotRegular, codes.Unavailable},       // the same
	{mount.ErrNotDirectory, codes.Unavailable},     // the same
	{mount.ErrTooMany, codes.Unavailable},          // the same
	{mount.ErrTooLarge, codes.Unavailable},         // the same
	{mount.ErrNotUTF8, codes.Unavailable},          // the same
	{mount.ErrControlCharacter, codes.Unavailable}, // the same
	{mount.ErrInvalidName, codes.Unavailable},      // PaV's own names are valid; a defect, but one that mounted something, maybe
	{mount.ErrUnsupported, codes.Unavailable},      // the agent checks the kernel when it starts
	{mount.ErrNotNamespace, codes.Unavailable},     // the same
	{mount.ErrPanic, codes.Unavailable},            // a defect, which may have struck between two effects
}

var (
	// errInvalid is wrapped if a call lacks a field, or asks for what cannot be.
	errInvalid = errors.New("invalid call")

	// errForeignPod is wrapped if /pav is asked for by a pod that PaV did not make.
	errForeignPod = errors.New("the volume is only for pods that PaV makes")

	// errGoesOn is returned where an earlier call for the volume goes on.
	errGoesOn = errors.New("an earlier call to publish the volume goes on")

	// errBegun is wrapped if such a pod has something of a /pav on the node.
	errBegun = errors.New("an earlier call has begun to publish the volume, and is to be undone first")
)

// toStatus returns the gRPC status for an error of the domain. What is in no row, such as an API
// server that does not answer, says nothing about what has been done so far, and so is not final.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, row := range codeTable {
		if errors.Is(err, row.err) {
			return status.Error(row.code, err.Error())
		}
	}
	return status.Error(codes.Unavailable, err.Error())
}
