package status

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// failingAnswer has everything that an answer may have.
func failingAnswer() *Answer {
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second))
	}
	first := at(2)
	return &Answer{
		Subject: "pod/web -n apps",
		Volumes: []*Report{{
			Namespace: "apps", Claim: "data", Volume: "pvc-u1", Provisioner: "demo", State: Failing,
			Details: []Detail{
				{Name: "Claim", Value: "apps/data, Pending"},
				{Name: "Volume", Value: "pvc-u1, Pending, attempt 3", State: Failing},
			},
			Timeline: []Entry{
				{Time: at(0), Object: "claim", What: "created: 1Gi, ReadWriteOnce"},
				{Time: at(1), Object: "pod create-1", What: "started on node n1", Duration: &metav1.Duration{Duration: 1300 * time.Millisecond}, Of: "start"},
				{Time: at(1), Object: "pod create-1", What: "creation pod failed", Duration: &metav1.Duration{}, Of: "run", State: Failing},
				{Time: at(75), Object: "claim", What: "ProvisioningFailed:\nno such \x1b[31muser", Count: 7, First: &first, State: Failing},
			},
			Findings: []Finding{
				{Code: "CreationFailed", State: Failing, Summary: "creation attempt 2 failed", Reason: "no such user\nat all", Next: []Step{
					{Text: "read its log", Command: "kubectl logs -n pav-pods create-1"}, {Text: "think"}}},
				{Code: "Other", State: Waiting, Summary: "something waits", Next: []Step{
					{Text: "read its log", Command: "kubectl logs -n pav-pods create-1"}}},
			},
			Log:    &Log{PodRef: PodRef{Namespace: "pav-pods", Name: "create-1", Container: "main"}, Lines: []string{"connecting\x1b[2J", "no such user"}},
			Hidden: []string{"PavProvisioners", "nodes"},
		}},
		Others: []string{"cache: the volume is not PaV's"},
	}
}

func TestRender(t *testing.T) {
	for name, style := range map[string]cli.Style{"plain": {}, "colour": cli.ColourStyle()} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := Render(&got, style, failingAnswer(), time.UTC); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if os.Getenv("PAV_GOLDEN") == "write" {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("PAV_GOLDEN=write writes it again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRender_NoVolume(t *testing.T) {
	var got bytes.Buffer
	if err := Render(&got, cli.Style{}, &Answer{Subject: "pod/web -n apps"}, time.UTC); err != nil {
		t.Fatal(err)
	}
	if want := "pod/web -n apps uses no PaV volume\n"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}
