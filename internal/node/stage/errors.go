package stage

import (
	"errors"
	"fmt"
)

// Errors that calls return, wrapped with details. The table in package csi maps them to gRPC codes, which say whether
// an error is final for kubelet.
var (
	// ErrBusy means that another call works on the volume, or that a pod or mount of the volume has to end first.
	ErrBusy = errors.New("another operation on the volume is in progress")

	// ErrPending means that the call ended before the work was complete; a repeated call continues it.
	ErrPending = errors.New("still waiting")

	// ErrHeld means that a volume that only one node at a time may have is staged on another node.
	ErrHeld = errors.New("the volume is staged on another node")

	// ErrFull means that the node has no free pod slot for the staging pod.
	ErrFull = errors.New("the node is full")

	// ErrUnknownVolume means that no PersistentVolume has the driver and handle.
	ErrUnknownVolume = errors.New("there is no such volume")

	// ErrRefused means that the volume cannot be staged or published as it is defined; nothing was done.
	ErrRefused = errors.New("the volume cannot be staged")

	// ErrFailed means that staging failed and has been reverted.
	ErrFailed = errors.New("staging failed")

	// ErrNotHere means that the volume to expand is not staged on the node.
	ErrNotHere = errors.New("the volume is not staged on this node")

	// ErrExpansion means that an attempt to expand a volume on the node has failed.
	ErrExpansion = errors.New("the expansion on the node failed")

	// ErrInfeasible means that it has failed, and that another attempt would fail, too.
	ErrInfeasible = errors.New("the expansion on the node is infeasible")

	// ErrNotStaged means that the volume to publish is not staged.
	ErrNotStaged = errors.New("the volume is not staged")

	// ErrInUse means that a volume that may have only one target has another one.
	ErrInUse = errors.New("the volume is published to another pod, and may be published to only one")

	// ErrMismatch means that the volume is already staged, or the target already published, with other parameters.
	ErrMismatch = errors.New("it already exists with other parameters")
)

// errAnswers means that a volume is not restaged because clients may still write to the current mount.
var errAnswers = errors.New("the volume still answers, or may")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}
