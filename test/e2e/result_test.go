package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A creation pod succeeds, but leaves an invalid result in /pav, or the definition itself has one: an event says which, and
// provisioning continues when it is fixed.
func TestUnusableResults(t *testing.T) {
	t.Parallel()
	// If it is unknown which handle the pod wrote, nothing is reverted: the pod itself has to clean up.
	const tidy = `rmdir "/storage/volumes/$volume"; echo "delete $volume $NODE" >> /storage/journal; `
	tests := map[string]struct {
		hook  string   // what the creation pod does
		field string   // what the definition says
		words []string // of the event
	}{
		"capacity-too-small":       {hook: "capacity=1000", words: []string{"/pav/capacity", "1k", "1Mi"}},
		"capacity-missing":         {hook: "exit 0", words: []string{"/pav/capacity"}},
		"capacity-no-quantity":     {hook: "capacity=plenty", words: []string{"/pav/capacity", `"plenty"`}},
		"capacity-field-too-small": {field: "capacity: 1Ki", words: []string{"spec.volumeCreation.capacity", "1Mi"}},
		"handle-of-two-lines":      {hook: tidy + `handle=$'two\nlines'`, words: []string{"/pav/handle", "control character"}},
		"handle-too-long":          {hook: tidy + "handle=$(printf %0129d 0)", words: []string{"/pav/handle", "128"}},
		"handle-no-text":           {hook: tidy + `handle=$'\xff'`, words: []string{"/pav/handle", "UTF-8"}},
		"handle-linked":            {hook: tidy + "ln -s /etc/hostname /pav/handle; printf %s $capacity > /pav/capacity; exit 0", words: []string{"/pav/handle", "symbolic link"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, name, with("creation", test.field))
			l.hook(t, "create", test.hook)
			claim := l.claim(t, "data")
			wantClaimEvent(t, claim, "ProvisioningFailed", append(test.words, l.name)...)
			l.unhook(t, "create")
			if test.field != "" {
				l.reapply(t, replacing(test.field, ""))
			}
			awaitBound(t, claim)
			removeClaim(t, claim)
		})
	}
}

// byClaim edits a ledger's definition as a careless author would have it: storage has the name of the claim, which
// tenants choose, and so has the handle.
func byClaim(text string) string {
	text = strings.ReplaceAll(text, `"/storage/volumes/$volume"`, `"/storage/volumes/$claim"`)
	text = strings.ReplaceAll(text, `mkdir "/storage`, `mkdir -p "/storage`)
	return strings.ReplaceAll(text, `handle="ledger:$volume"`, `handle="ledger:$claim"`)
}

// A tenant makes a claim of the name of another one, whose volume an administrator retained, so that its creation
// pod writes the retained volume's handle. Reverting that would delete the retained data.
func TestHandleOfARetainedVolume_LosesNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "same-handle", with("class", "reclaimPolicy: Retain"), byClaim)
	first := l.claim(t, "data")
	pv := awaitBound(t, first)
	precious := filepath.Join(l.directory, "volumes", "data", "precious")
	must(t, os.WriteFile(precious, []byte("precious"), 0o600))
	remove(t, first)
	retained := awaitRetained(t, first)

	greedy := l.claim(t, "data")
	wantClaimEvent(t, greedy, "ProvisioningFailed", l.name, `"ledger:data"`, pv.Name, "nothing is created or reverted")
	removeClaim(t, greedy)

	// The claim is deleted while its creation pod runs, which has written the handle.
	l.hook(t, "create", `printf %s "$handle" > /pav/handle; while test -e /storage/hooks/create; do sleep 0.1; done`)
	hasty := l.claim(t, "data")
	l.runningPod(t, pavv1.WorkflowCreation, hasty)
	l.awaitEffects(t, hasty, "create")
	eventually(t, "the pod has written the handle, as it waits", func(ctx context.Context) error {
		pods, err := l.pods(ctx, pavv1.WorkflowCreation, hasty)
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("there are %d pods, %w", len(pods), err)
		}
		_, err = kubectl(ctx, "", "exec", "-n", pods[0].Namespace, pods[0].Name, "--", "test", "-s", "/pav/handle")
		return err
	})
	removeClaim(t, hasty)
	l.unhook(t, "create")

	if text, err := readFile(precious); err != nil || text != "precious" {
		t.Errorf("the retained volume's file is %q, %v", text, err)
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{first, greedy, hasty} {
		must(t, l.wantEffects(claim, "create"))
	}
	l.settle(t, greedy, hasty)
	remove(t, pv)
	_, err := kubectl(t.Context(), "", "patch", "pavvolume", retained.Name, "--type=merge", "-p", `{"spec": {"reclaimPolicy": "Delete"}}`)
	must(t, err)
	awaitVolume(t, first, "has its finalizer again", func(v *pavv1.PavVolume) bool { return len(v.Finalizers) == 1 })
	must(t, kube.Delete(t.Context(), retained))
	awaitNoVolume(t, first)
	must(t, l.wantEffects(first, "create", "delete"))
}

// settle is an administrator's look at what was left: nothing but what another volume has.
func (l *ledger) settle(t *testing.T, claims ...*corev1.PersistentVolumeClaim) {
	t.Helper()
	journal, err := os.OpenFile(filepath.Join(l.directory, "journal"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	for _, claim := range claims {
		_, failed := fmt.Fprintf(journal, "delete %s by-hand\n", volumeName(claim))
		err = errors.Join(err, failed)
	}
	must(t, errors.Join(err, journal.Close()))
}
