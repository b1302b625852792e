package cluster

import (
	"testing"

	"github.com/albertofaria/pav/test/cluster/internal/control"
)

func TestCRDNameIsThatOfTheFile(t *testing.T) {
	const want = "volumesnapshots.snapshot.storage.k8s.io"
	if got := crdName("/bin/snapshot-crds/snapshot.storage.k8s.io_volumesnapshots.yaml"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunsSince(t *testing.T) {
	for name, test := range map[string]struct {
		state control.State
		want  bool
		err   string
	}{
		"running":         {state: control.State{Name: "a", Running: true, Starts: 1}, want: true},
		"not started yet": {state: control.State{Name: "a"}},
		"ended": {
			state: control.State{Name: "a", Starts: 1, LastExit: "exit code 1", Log: "/log"},
			err:   "it ended (exit code 1), see /log",
		},
		"started again": {
			state: control.State{Name: "a", Running: true, Starts: 2, LastExit: "exit code 1", Log: "/log"},
			err:   "it ended (exit code 1), see /log",
		},
		"unknown": {state: control.State{Name: "b", Running: true}, err: `there is no component "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := runsSince([]control.State{test.state}, "a")
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != test.want || text != test.err {
				t.Errorf("got %t, %q; want %t, %q", got, text, test.want, test.err)
			}
		})
	}
}
