package reconcile

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failing is a reader. Its first reads, as many as times, fail with err. All later reads succeed.
type failing struct {
	client.Reader

	err   error
	times int
	reads int
}

func (f *failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.read()
}

func (f *failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return f.read()
}

func (f *failing) read() error {
	f.reads++
	if f.reads <= f.times {
		return f.err
	}
	return nil
}

func TestReader(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	away := &url.Error{Op: "Get", URL: "https://api", Err: errors.New("connection refused")}
	tests := map[string]struct {
		err       error
		times     int
		wantReads int
		wantErr   bool
	}{
		"nothing fails":                 {wantReads: 1},
		"the API server is busy":        {err: apierrors.NewTooManyRequests("busy", 1), times: 1, wantReads: 2},
		"its store has no leader":       {err: apierrors.NewInternalError(errors.New("etcdserver: leader changed")), times: 3, wantReads: 4},
		"it cannot be reached":          {err: away, times: 2, wantReads: 3},
		"it is away for longer":         {err: away, times: 9, wantReads: 4, wantErr: true},
		"there is no such object":       {err: apierrors.NewNotFound(pods, "p"), times: 1, wantReads: 1, wantErr: true},
		"it is forbidden":               {err: apierrors.NewForbidden(pods, "p", errors.New("no")), times: 1, wantReads: 1, wantErr: true},
		"the page of a list is too old": {err: apierrors.NewResourceExpired("old"), times: 1, wantReads: 1, wantErr: true},
		"the caller has no time":        {err: &url.Error{Op: "Get", Err: context.DeadlineExceeded}, times: 1, wantReads: 1, wantErr: true},
		"it is no answer at all":        {err: errors.New("no kind is registered"), times: 1, wantReads: 1, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for verb, read := range map[string]func(RetryingReader) error{
					"get":  func(r RetryingReader) error { return r.Get(t.Context(), client.ObjectKey{}, &corev1.Pod{}) },
					"list": func(r RetryingReader) error { return r.List(t.Context(), &corev1.PodList{}) },
				} {
					f := &failing{err: test.err, times: test.times}
					if err := read(RetryingReader{f}); (err != nil) != test.wantErr || f.reads != test.wantReads {
						t.Errorf("%s: %d reads, %v; want %d", verb, f.reads, err, test.wantReads)
					}
				}
			})
		})
	}
}

func TestReader_WhoseCallerLeaves_EndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		f := &failing{err: apierrors.NewTooManyRequests("busy", 1), times: 9}
		if err := (RetryingReader{f}).Get(ctx, client.ObjectKey{}, &corev1.Pod{}); err == nil || f.reads != 1 {
			t.Errorf("%d reads, %v", f.reads, err)
		}
	})
}
