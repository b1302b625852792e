package cluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/albertofaria/pav/test/cluster/internal/paths"
)

func temporary(t *testing.T) Cluster {
	t.Helper()
	return Cluster{State: paths.State{Directory: filepath.Join(t.TempDir(), "state")}, Cache: t.TempDir(), Progress: io.Discard}
}

func TestStateDirectoryIsClaimedOnlyIfItIsOurs(t *testing.T) {
	for name, test := range map[string]struct {
		files   []string
		refused bool
		remains bool
	}{
		"no directory":                       {},
		"a record":                           {files: []string{"cluster.json", "other"}, remains: true},
		"what nodes wrote after its removal": {files: []string{"nodes/node1/disk/var-lib/file"}, remains: true},
		"shared files without a node":        {files: []string{"shared/file"}, refused: true},
		"shared files of its nodes":          {files: []string{"nodes/node1/disk/file", "shared/file"}, remains: true},
		"files of someone else":              {files: []string{"letter.txt"}, refused: true},
		"someone's directory of that name":   {files: []string{"nodes/list.txt"}, refused: true},
		"ours among someone else's":          {files: []string{"nodes/node1/disk/file", "letter.txt"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := temporary(t)
			for _, file := range test.files {
				path := filepath.Join(cluster.State.Directory, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			remains, err := cluster.remains()
			if err != nil || remains != test.remains {
				t.Errorf("remains: got %v, %v; want %v", remains, err, test.remains)
			}
			if err := cluster.claim(); (err != nil) != test.refused {
				t.Errorf("claim: got %v, want refused: %v", err, test.refused)
			}
		})
	}
}

func TestUpRefusesImpossibleSizesBeforeAnythingElse(t *testing.T) {
	for _, nodes := range []int{-1, 0, 4} {
		cluster := temporary(t)
		if err := cluster.Up(t.Context(), Options{Nodes: nodes}); err == nil {
			t.Errorf("%d nodes are accepted", nodes)
		}
		if _, err := os.Stat(cluster.State.Directory); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d nodes: something was made", nodes)
		}
	}
}

func TestAnotherClusterThatRunsIsRefused(t *testing.T) {
	running := record{Phase: running, Nodes: 2, Kubernetes: "v1.30.14"}
	former := running
	former.Kubernetes = "" // An earlier program recorded none.
	if err := former.mustBe(Options{Nodes: 2, Kubernetes: "v1.36.3"}); err != nil {
		t.Errorf("the cluster of an earlier program: %v", err)
	}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"the same":        {options: Options{Nodes: 2, Kubernetes: "v1.30.14"}},
		"another size":    {options: Options{Nodes: 1, Kubernetes: "v1.30.14"}, want: "a cluster with 2 node(s) is up: take it down first"},
		"another version": {options: Options{Nodes: 2, Kubernetes: "v1.36.3"}, want: `a cluster with Kubernetes "v1.30.14" is up: take it down first`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := running.mustBe(test.options); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWithoutAClusterNodesAreUnknownAndTheStatusSaysSo(t *testing.T) {
	cluster := temporary(t)
	if _, err := cluster.node("node1"); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	status, err := cluster.Status(t.Context())
	if err != nil || status.Phase != "none" || status.Nodes == nil {
		t.Errorf("got %+v, %v", status, err)
	}
}

func TestRecordedNodesAreKnown(t *testing.T) {
	cluster := temporary(t)
	if err := os.MkdirAll(cluster.State.Directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := cluster.save(record{Phase: running, Nodes: 2, Bin: "/bin-directory"}); err != nil {
		t.Fatal(err)
	}
	node, err := cluster.node("node2")
	if err != nil || node.Index != 2 || node.Bin != "/bin-directory" {
		t.Errorf("got %+v, %v", node, err)
	}
	if _, err := cluster.node("node3"); err == nil {
		t.Error("a node too many is known")
	}
	if _, err := identity(node); !errors.Is(err, ErrNodeDown) {
		t.Errorf("got %v, want ErrNodeDown", err)
	}
	// A cluster without processes is not complete, even if its record says that it is running.
	if cluster.complete(record{Phase: running, Nodes: 2}) {
		t.Error("a cluster without processes is complete")
	}
}

func TestCommandsGetOurProgramsAndNoProxies(t *testing.T) {
	got := environment([]string{
		"PATH=/caller", "KUBECONFIG=/caller", "https_proxy=x", "HTTP_PROXY=x", "NO_PROXY=x", "HOME=/home", "EMPTY=",
		"PAV_CLUSTER_SSH_KEY=/caller",
	}, "/bin-directory", map[string]string{"KUBECONFIG": "/admin", SSHKeyVariable: "/key"})
	slices.Sort(got)
	want := []string{
		"EMPTY=", "HOME=/home", "KUBECONFIG=/admin",
		"PATH=/bin-directory:/caller:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PAV_CLUSTER_SSH_KEY=/key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBootIdentifiersAreDifferentAndWellFormed(t *testing.T) {
	pattern := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	first, second := formatUUID(newUUID()), formatUUID(newUUID())
	if !pattern.MatchString(first) || first == second {
		t.Errorf("got %q and %q", first, second)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for count, want := range map[int]string{2: "b\nc", 9: "a\nb\nc"} {
		if got := tail(path, count); got != want {
			t.Errorf("%d lines: got %q, want %q", count, got, want)
		}
	}
	if got := tail(path+".missing", 2); got != "" {
		t.Errorf("got %q of a missing file", got)
	}
}
