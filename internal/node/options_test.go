package node

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestOptions_ReportAllMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		words []string // that the error contains; empty if there is no error
	}{
		"as deployed":            {},
		"a longer grace":         {args: []string{"--orphan-grace=1h"}},
		"no grace":               {args: []string{"--orphan-grace=0"}, words: []string{"--orphan-grace"}},
		"a negative grace":       {args: []string{"--orphan-grace=-5m"}, words: []string{"--orphan-grace"}},
		"no node":                {args: []string{"--node-name="}, words: []string{"--node-name", "$NODE_NAME"}},
		"a relative directory":   {args: []string{"--kubelet-dir=var/lib/kubelet"}, words: []string{"--kubelet-dir"}},
		"a slash at the end":     {args: []string{"--kubelet-dir=/var/lib/kubelet/"}, words: []string{"--kubelet-dir"}},
		"no requests":            {args: []string{"--kube-api-qps=0"}, words: []string{"--kube-api-qps"}},
		"several things at once": {args: []string{"--orphan-grace=0", "--kube-api-burst=0", "--node-name="}, words: []string{"--orphan-grace", "--kube-api-burst", "--node-name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NODE_NAME", "node1")
			o := DefaultOptions()
			flags := pflag.NewFlagSet("pav node", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err != nil) != (len(test.words) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v says nothing of %s", err, word)
				}
			}
		})
	}
}

func TestDefaultOptions_LeaveOrphansToKubeletForFiveMinutes(t *testing.T) {
	if grace := DefaultOptions().OrphanGrace; grace != 5*time.Minute {
		t.Errorf("got %s", grace)
	}
}
