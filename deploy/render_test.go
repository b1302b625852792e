package deploy

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// renderFor returns what deploy/render prints for an image.
func renderFor(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var errs bytes.Buffer
	command := exec.CommandContext(t.Context(), "./render", args...)
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return errs.String(), err
	}
	return string(out), nil
}

func TestRender_NamesTheImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"by default":             {args: []string{"docker.io/albertofaria/pav:0.2.0"}, want: "docker.io/albertofaria/pav:0.2.0"},
		"a registry with a port": {args: []string{"registry.example:5000/group/pav:1.0"}, want: "registry.example:5000/group/pav:1.0"},
		"a tag like a number":    {args: []string{"registry.example/pav:1e3", ""}, want: "registry.example/pav:1e3"},
		"a digest":               {args: []string{"registry.example/pav:v1", digest}, want: "registry.example/pav:v1@" + digest},
		"a port like the tag":    {args: []string{"registry.example:80/pav:80"}, want: "registry.example:80/pav:80"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := renderFor(t, test.args...)
			if err != nil {
				t.Fatal(err, got)
			}
			want := strings.ReplaceAll(string(deployment(t)), "docker.io/albertofaria/pav:0.2.0", test.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it has more than another image (-deployment.yaml +rendered):\n%s", diff)
			}
		})
	}
}

func TestRender_Refuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an image without a tag":                  {args: []string{"docker.io/albertofaria/pav"}, want: "must have a tag"},
		"an image without a tag, and with a port": {args: []string{"registry.example:5000/pav"}, want: "must have a tag"},
		"an image with a digest":                  {args: []string{"registry.example/pav:1@sha256:abc"}, want: "no digest"},
		"a wrong digest":                          {args: []string{"registry.example/pav:1", "abc"}, want: "/image/digest"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := renderFor(t, test.args...); err == nil || !strings.Contains(got, test.want) {
				t.Errorf("got %v and %q, want an error with %q", err, got, test.want)
			}
		})
	}
}

func TestRender_ForBuckets(t *testing.T) {
	got, err := renderFor(t, "--buckets")
	if err != nil {
		t.Fatal(err, got)
	}
	if diff := cmp.Diff(string(readFile(t, "../deployment-buckets.yaml")), got); diff != "" {
		t.Errorf("(-deployment-buckets.yaml +rendered):\n%s", diff)
	}
}
