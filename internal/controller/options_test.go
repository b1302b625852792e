package controller

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestOptions(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		problems  []string
	}{
		"the defaults, in a pod":         {arguments: []string{"--namespace=pav"}},
		"no leader, no namespace":        {arguments: []string{"--leader-elect=false", "--webhook-address=0"}},
		"a webhook has a namespace":      {arguments: []string{"--leader-elect=false"}, problems: []string{"--namespace"}},
		"a webhook has a port":           {arguments: []string{"--namespace=pav", "--webhook-address=9443"}, problems: []string{"--webhook-address"}},
		"a webhook has a true port":      {arguments: []string{"--namespace=pav", "--webhook-address=localhost:0"}, problems: []string{"--webhook-address"}},
		"a webhook on one address":       {arguments: []string{"--namespace=pav", "--webhook-address=127.0.0.1:19443"}},
		"a leader has a namespace":       {problems: []string{"--namespace"}},
		"all problems are told at once":  {arguments: []string{"--namespace=a/b", "--lease-duration=1s", "--workers=0", "--kube-api-qps=0", "--kube-api-burst=0"}, problems: []string{"--namespace", "--lease-duration", "--workers", "--kube-api-qps", "--kube-api-burst"}},
		"templates have some time":       {arguments: []string{"--namespace=pav", "--template-timeout=0s"}, problems: []string{"--template-timeout"}},
		"leases may be short, for tests": {arguments: []string{"--namespace=pav", "--lease-duration=2s"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "")
			o := DefaultOptions()
			flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(test.arguments); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err == nil) != (len(test.problems) == 0) {
				t.Fatalf("got %v, want problems with %v", err, test.problems)
			}
			for _, problem := range test.problems {
				if !strings.Contains(err.Error(), problem+" ") && !strings.Contains(err.Error(), problem+":") {
					t.Errorf("%v does not tell of %s", err, problem)
				}
			}
		})
	}
}
