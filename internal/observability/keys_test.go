package observability

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestRequests_NameTheirObject(t *testing.T) {
	more := func(name types.NamespacedName) []any { return []any{Claim, Name("default", name.Name)} }
	for want, test := range map[string]struct {
		request *ctrl.Request
		more    func(types.NamespacedName) []any
	}{
		`"controller":"c"}`:                                    {},
		`"controller":"c","volume":"pv"}`:                      {request: &ctrl.Request{NamespacedName: types.NamespacedName{Name: "pv"}}},
		`"controller":"c","volume":"ns/pv"}`:                   {request: &ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "pv"}}},
		`"controller":"c","volume":"pv","claim":"default/pv"}`: {request: &ctrl.Request{NamespacedName: types.NamespacedName{Name: "pv"}}, more: more},
	} {
		out := &bytes.Buffer{}
		Requests(NewLogger(out, LogOptions{}), "c", Volume, test.more)(test.request).Info("x")
		if !strings.HasSuffix(strings.TrimSpace(out.String()), want) {
			t.Errorf("got %s, want %s", out, want)
		}
	}
}

func TestNote_GoesToTheCallOfItsContext(t *testing.T) {
	ctx, noted := WithNotes(t.Context())
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	Note(inner, Volume, "one")
	Note(inner, Pod, "")
	Note(inner, Claim, "default/data")
	Note(inner, Volume, "two")
	Note(t.Context(), Volume, "of no call")
	if diff := cmp.Diff([]any{Volume, "two", Claim, "default/data"}, noted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
