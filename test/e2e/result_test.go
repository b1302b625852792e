package e2e

import (
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A creation pod succeeds, but leaves something in /pav that cannot be used, or the definition itself
// says so: the claim's user is told which, and all heals when it is mended.
func TestUnusableResults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		hook  string   // what the creation pod does
		field string   // what the definition says
		words []string // of the event
	}{
		"capacity-too-small":       {hook: "capacity=1000", words: []string{"/pav/capacity", "1k", "1Mi"}},
		"capacity-missing":         {hook: "exit 0", words: []string{"/pav/capacity"}},
		"capacity-no-quantity":     {hook: "capacity=plenty", words: []string{"/pav/capacity", `"plenty"`}},
		"capacity-field-too-small": {field: "capacity: 1Ki", words: []string{"spec.volumeCreation.capacity", "1Mi"}},
		"handle-of-two-lines":      {hook: `handle=$'two\nlines'`, words: []string{"/pav/handle", "control character"}},
		"handle-too-long":          {hook: "handle=$(printf %0129d 0)", words: []string{"/pav/handle", "128"}},
		"handle-no-text":           {hook: `handle=$'\xff'`, words: []string{"/pav/handle", "UTF-8"}},
		"handle-linked":            {hook: "ln -s /etc/hostname /pav/handle; printf %s $capacity > /pav/capacity; exit 0", words: []string{"/pav/handle", "symbolic link"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, name, with("creation", test.field))
			l.hook(t, "create", test.hook)
			claim := l.claim(t, "data")
			told(t, claim, "ProvisioningFailed", append(test.words, l.name)...)
			l.unhook(t, "create")
			if test.field != "" {
				l.reapply(t, replacing(test.field, ""))
			}
			awaitBound(t, claim)
			removeClaim(t, claim)
		})
	}
}

// Deleting the second volume would delete the first one's storage, were it not refused.
func TestHandleOfAnotherVolume_IsRefused(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "same-handle")
	l.hook(t, "create", "handle='the only one'")
	first := l.claim(t, "first")
	pv := awaitBound(t, first)
	second := l.claim(t, "second")
	told(t, second, "ProvisioningFailed", l.name, `"the only one"`, pv.Name)
	awaitVolume(t, second, "is reverted", func(v *pavv1.PavVolume) bool { return v.Status.Attempt >= 2 })
	must(t, l.wantEffects(first, "create"))
	removeClaim(t, first)
	awaitBound(t, second) // as soon as the handle is free
	removeClaim(t, second)
}
