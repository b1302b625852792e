package stage

import (
	"errors"
	"fmt"
)

// Errors that calls answer with, wrapped with details. What a code of CSI means for kubelet, and so
// which of these are final, is in package csi's table.
var (
	// ErrBusy means that another call works on the volume, or that something of the volume has to end first.
	ErrBusy = errors.New("another operation on the volume is going on")

	// ErrPending means that the call ended before the work was over; a repeated call joins it.
	ErrPending = errors.New("still waiting")

	// ErrHeld means that a volume that one node may have at a time is staged on another.
	ErrHeld = errors.New("the volume is staged on another node")

	// ErrFull means that the node has no free pod slot for the pod that is to stage the volume.
	ErrFull = errors.New("the node is full")

	// ErrUnknownVolume means that no persistent volume has the driver and handle.
	ErrUnknownVolume = errors.New("there is no such volume")

	// ErrRefused means that the volume cannot be staged or published as it is defined; nothing has been done.
	ErrRefused = errors.New("the volume cannot be staged")

	// ErrFailed means that staging failed and has been reverted.
	ErrFailed = errors.New("staging failed")

	// ErrNotStaged means that a volume is to be published that is not staged.
	ErrNotStaged = errors.New("the volume is not staged")

	// ErrInUse means that a volume that may have one target only has another one.
	ErrInUse = errors.New("the volume is published to another pod, and may be published to one only")

	// ErrMismatch means that the volume is staged, or the target published, already, in another way.
	ErrMismatch = errors.New("it exists already in another way")
)

// errAnswers means that a volume is not staged anew because the present one may still be written to.
var errAnswers = errors.New("the volume still answers, or may")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}
