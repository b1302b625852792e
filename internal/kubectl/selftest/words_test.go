package selftest

import (
	"errors"
	"testing"
)

func TestWords_NameNoPodThatIsRemoved_AndWhatAnFSGroupNeeds(t *testing.T) {
	failed := errors.New("container ended with exit code 1; see kubectl logs -n pav-pods stage-1 --all-containers")
	denied := &podError{message: "sh: can't create /volume/file: Permission denied"}
	for name, test := range map[string]struct {
		err    error
		change func(*options)
		want   string
	}{
		"a pod that is removed":      {err: failed, want: "container ended with exit code 1"},
		"a pod that stays":           {err: failed, change: func(o *options) { o.Keep = true }, want: failed.Error()},
		"permission, no fsGroup":     {err: denied, want: denied.message},
		"permission, with a fsGroup": {err: denied, change: func(o *options) { o.FSGroup = 1000 }, want: denied.message + "; for kubelet to give the files to the pod's fsGroup, set spec.volumeStaging.fsGroupPolicy: File"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newRun(t, provisionerYAML, test.change).words(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
