package world

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
)

// Two goroutines of an agent may send the same request at the same moment, without a reconcile ID or a step that tells them
// apart. Their order must not depend on which of them is first.
func TestSettle_SortsEqualCallsByWhoSendsThem(t *testing.T) {
	orders := map[string]bool{}
	for i := range 20 {
		synctest.Test(t, func(t *testing.T) {
			w, order := New(1, nil), []string{}
			one := func() { ask(t, w, func() { order = append(order, "one") }) }
			other := func() { ask(t, w, func() { order = append(order, "other") }) }
			if i%2 == 1 {
				go func() { other() }()
				synctest.Wait()
			}
			go func() { one() }()
			synctest.Wait()
			if i%2 == 0 {
				go func() { other() }()
			}
			w.Settle()
			for _, call := range w.Calls() {
				if err := w.Go(call); err != nil {
					t.Error(err)
				}
			}
			orders[strings.Join(order, ", ")] = true
		})
	}
	if len(orders) != 1 {
		t.Errorf("equal calls took effect in the orders %v", orders)
	}
}

func ask(t *testing.T, w *World, do func()) {
	t.Helper()
	if err := w.Ask(context.Background(), NewCall("agent", "get Pod a", func() error { do(); return nil })); err != nil { //nolint:forbidigo // as the goroutines of an agent
		t.Error(err)
	}
}
