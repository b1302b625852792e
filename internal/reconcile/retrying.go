package reconcile

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pauses are the waits before a read is repeated. They are short: for longer failures, the caller has its own
// backoff.
var pauses = []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond}

// RetryingReader repeats reads that fail for a moment.
type RetryingReader struct{ client.Reader }

// Get implements client.Reader.
func (r RetryingReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return repeat(ctx, func() error { return r.Reader.Get(ctx, key, into, options...) })
}

// List implements client.Reader.
func (r RetryingReader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return repeat(ctx, func() error { return r.Reader.List(ctx, into, options...) })
}

// RetryingClient repeats reads that fail for a moment. Writes are not repeated: the caller must find out whether a
// failed write took effect.
type RetryingClient struct{ client.Client }

// Get implements client.Reader.
func (c RetryingClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return RetryingReader{c.Client}.Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (c RetryingClient) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return RetryingReader{c.Client}.List(ctx, into, options...)
}

// RetryingWatcher is a RetryingClient that can also watch. Watches are not repeated.
type RetryingWatcher struct{ client.WithWatch }

// Get implements client.Reader.
func (w RetryingWatcher) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return RetryingReader{w.WithWatch}.Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (w RetryingWatcher) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return RetryingReader{w.WithWatch}.List(ctx, into, options...)
}

func repeat(ctx context.Context, read func() error) error {
	for _, pause := range pauses {
		err := read()
		if err == nil || !isMomentary(err) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
	return read()
}

// isMomentary reports whether the same request may succeed a moment later: the API server could not answer it,
// or could not be reached.
func isMomentary(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}
