package e2e

import (
	"context"
	_ "embed" // for the rights on record
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What the agents have without buckets, and what they have besides if these are enabled.
var (
	//go:embed testdata/rights.golden
	rights string
	//go:embed testdata/rights-buckets.golden
	rightsForBuckets string
)

// rightsOf returns what the roles of an agent allow in a namespace, sorted, without what is known already.
func rightsOf(ctx context.Context, account, namespace string, known map[string]bool) ([]string, error) {
	out, err := kubectl(ctx, "", "auth", "can-i", "--list", "--no-headers", "-n", namespace, "--as=system:serviceaccount:pav:"+account)
	var lines []string
	for line := range strings.Lines(out) {
		// Lines that begin with a blank are about paths that are no resources.
		if text := strings.Join(strings.Fields(strings.Replace(line, "[]", "", 1)), " "); !strings.HasPrefix(line, " ") && !known[text] {
			lines = append(lines, text)
			known[text] = true
		}
	}
	slices.Sort(lines)
	return lines, err
}

// TestRightsOfTheAgents_AreAsDocumented is about what the roles allow, which the policies narrow further. Other tests find buckets
// enabled.
func TestRightsOfTheAgents_AreAsDocumented(t *testing.T) {
	_, err := kubectl(t.Context(), "", "delete", "-f", bucketsManifest)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "apply", "--server-side", "-f", bucketsManifest); err != nil {
			t.Error(err)
		}
	})
	var known map[string]map[string]bool
	within(t, time.Minute, "the agents have their rights, and not those for buckets", func(ctx context.Context) error {
		known = map[string]map[string]bool{"controller-agent": {}, "node-agent": {}}
		var got strings.Builder
		for _, account := range []string{"controller-agent", "node-agent"} {
			lines, err := rightsOf(ctx, account, "pav", known[account])
			if err != nil {
				return err
			}
			fmt.Fprintf(&got, "%s:\n%s\n\n", account, strings.Join(lines, "\n"))
		}
		if diff := cmp.Diff(rights, strings.TrimSpace(got.String())+"\n"); diff != "" {
			return fmt.Errorf("the rights of the agents (-on record +now):\n%s", diff)
		}
		return nil
	})
	_, err = kubectl(t.Context(), "", "apply", "--server-side", "-f", bucketsManifest)
	must(t, err)
	within(t, time.Minute, "the agents have the rights for buckets", func(ctx context.Context) error {
		var got strings.Builder
		for _, account := range []string{"controller-agent", "node-agent"} {
			before := maps.Clone(known[account])
			for _, namespace := range []string{"pav", "pav-credentials"} {
				lines, err := rightsOf(ctx, account, namespace, before)
				if err != nil {
					return err
				}
				fmt.Fprintf(&got, "%s in %s:\n%s\n\n", account, namespace, strings.Join(lines, "\n"))
			}
		}
		if diff := cmp.Diff(strings.Fields(rightsForBuckets), strings.Fields(got.String())); diff != "" {
			return fmt.Errorf("the rights of the agents (-on record +now):\n%s", diff)
		}
		return nil
	})
}
