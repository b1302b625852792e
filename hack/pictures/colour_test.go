package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 1, 12, 0, seconds, 0, time.UTC))
}

// What the picture has for colours, the command has on a terminal.
func TestColourDescription_AsTheCommandDoes(t *testing.T) {
	first := at(1)
	tests := map[string]*status.Report{
		"failing": {
			Namespace: "apps", Claim: "data", State: status.Failing,
			Details: []status.Detail{
				{Name: "Claim", Value: "apps/data, Pending"},
				{Name: "StorageClass", Value: "demo"},
				{Name: "Volume", Value: "pvc-u1, Pending, attempt 3", State: status.Failing},
			},
			Timeline: []status.Entry{
				{Time: at(0), Object: "claim", What: "created: 1Gi, ReadWriteOnce"},
				{Time: at(1), Object: "pod create-1", What: "creation pod failed: container main, exit code 5", State: status.Failing},
				{Time: at(75), Object: "claim", What: "ProvisioningFailed: PavProvisioner: no room", Count: 4, First: &first, State: status.Failing},
				{Time: at(76), Object: "pod delete-1", What: "deletion pod started"},
			},
			Findings: []status.Finding{{State: status.Failing, Summary: "creation attempt 2 failed; attempt 3 follows", Reason: "no room\nat all", Next: []status.Step{
				{Text: "read its log", Command: "kubectl logs -n pav-pods create-1"}, {Text: "think"}}}},
			Log: &status.Log{PodRef: status.PodRef{Namespace: "pav-pods", Name: "create-1", Container: "main"}, Lines: []string{"connecting", "", "no room"}},
		},
		"healthy": {
			Namespace: "apps", Claim: "data", State: status.Healthy,
			Details: []status.Detail{
				{Name: "Claim", Value: "apps/data, Bound", State: status.Healthy},
				{Name: "Volume", Value: "pvc-u1, Ready", State: status.Healthy},
				{Name: "PV", Value: "Bound, 10Mi, reclaim policy Delete", State: status.Healthy},
				{Name: "On node1", Value: "Staged", State: status.Healthy},
				{Name: "Used by", Value: "pod web, Running, on node node1", State: status.Healthy},
			},
			Timeline: []status.Entry{
				{Time: at(0), Object: "volume", What: "provisioned", Duration: &metav1.Duration{Duration: 3 * time.Second}, Of: "in all", State: status.Healthy},
				{Time: at(1), Object: "pod web", What: "scheduled to node node1", Duration: &metav1.Duration{Duration: 63 * time.Second}, Of: "wait"},
				{Time: at(2), Object: "pod stage-1", What: "staging succeeded", State: status.Healthy},
				{Time: at(2), Object: "node node1", What: "staged: the volume is available on the node", State: status.Healthy},
				{Time: at(3), Object: "pod web", What: "started with the volume", State: status.Healthy},
			},
			Findings: []status.Finding{{State: status.Healthy, Summary: "the volume is available on node node1"}},
		},
	}
	for name, report := range tests {
		t.Run(name, func(t *testing.T) {
			render := func(style cli.Style) string {
				var text bytes.Buffer
				if err := status.Render(&text, style, &status.Answer{Volumes: []*status.Report{report}}, time.UTC); err != nil {
					t.Fatal(err)
				}
				return text.String()
			}
			if diff := cmp.Diff(render(colours), colourDescription(render(cli.Style{}))); diff != "" {
				t.Errorf("(-command +picture):\n%s", diff)
			}
		})
	}
}

func TestColourTest(t *testing.T) {
	const plain = `demo, tested as demo-test
  passed   lint                                    1ms
  skipped  use on two nodes at once                     no other node
  warning  leave the node                           5s  the data was lost
  failed   create                                 2.5s  pod failed
             Claim demo/filesystem: FAILING

demo failed: 5 steps, 1 failure, in 9.7s
(exit status 1)
`
	const want = `[1mdemo, tested as demo-test[0m
  [32mpassed  [0m lint                                    1ms
  [2mskipped [0m use on two nodes at once                     no other node
  [33mwarning [0m leave the node                           5s  the data was lost
  [31mfailed  [0m create                                 2.5s  pod failed
             Claim demo/filesystem: FAILING

[31mdemo failed: 5 steps, 1 failure, in 9.7s[0m
[2m(exit status 1)[0m
`
	if diff := cmp.Diff(want, strings.ReplaceAll(colourTest(plain), "\x1b", "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The pictures have the words of the transcripts.
func TestColours_ChangeNoWord(t *testing.T) {
	page, err := os.ReadFile("../../docs/transcripts.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile("\x1b\\[[0-9]+m")
	for _, p := range pictures {
		if p.colour == nil {
			continue
		}
		t.Run(p.file, func(t *testing.T) {
			want, err := recorded(string(page), p.command)
			if err != nil {
				t.Fatal(err)
			}
			coloured := p.colour(want)
			if got := codes.ReplaceAllString(coloured, ""); got != want || coloured == want {
				t.Errorf("(-transcript +picture):\n%s", cmp.Diff(want, got))
			}
		})
	}
}
