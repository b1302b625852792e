package integration

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/workflow"
)

// askDoctor runs "kubectl pav doctor" as a user, and returns what it wrote and its exit status.
func askDoctor(t *testing.T, c *cluster, user envtest.User, args ...string) (out string, code int) {
	t.Helper()
	known, err := c.Environment.AddUser(user, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := known.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	streams, _, written, _ := genericiooptions.NewTestIOStreams()
	root := kubectl.Root(&cli.Env{IOStreams: streams, Config: genericclioptions.NewConfigFlags(true), Version: "0.2.0"})
	root.SetArgs(append([]string{"doctor", "--kubeconfig", file}, args...))
	err = root.ExecuteContext(t.Context())
	if exit, is := errors.AsType[*cli.ExitError](err); is && exit.Err == nil {
		return written.String(), exit.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	return written.String(), 0
}

// bundled returns the files of a bundle.
func bundled(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

// The cluster of these tests has all objects of an installation but the webhooks, and no nodes.
func TestDoctor_SaysWhatIsMissing_AndItsBundleHasNoSecret(t *testing.T) {
	c := start(t)
	run(t, c)
	const secret = "canary-of-doctor"
	driver(t, c, "doctored", func(p *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		p.Spec.VolumeCreation.PodTemplate = field(`{"spec": {"containers": [{"name": "main", "image": "none",
			"args": ["--token=` + secret + `"], "env": [{"name": "PASSWORD", "value": "{{ params.password }}"}, {"name": "OTHER", "value": "` + secret + `-literal"}]}]}}`)
		class.Parameters = map[string]string{"password": secret}
	})
	claim := claimOf("doctored", "data")
	claim.Annotations = map[string]string{"password": secret}
	mustCreate(t, c, claim)
	creation, _ := podOf(t, c, claim, pavv1.WorkflowCreation)

	bundle := filepath.Join(t.TempDir(), "pav.tar.gz")
	admin := envtest.User{Name: "doctors-admin", Groups: []string{"system:masters"}}
	out, code := askDoctor(t, c, admin, "--bundle", bundle)
	for _, words := range [][]string{
		{"ok", "definitions", "6 CustomResourceDefinitions are established, and have the fields of version 0.2.0"},
		{"problem", "controller agent", "0 of 2 replicas are ready"}, {"problem", "webhooks", "ValidatingWebhookConfiguration pav-provisioners does not exist"},
		{"unknown", "drivers", "no node agent"}, {"ok", "policies", "all 20 are there"}, {"ok", "namespaces", "pav-pods"}, {"ok", "leftovers"},
	} {
		if !lineHas(out, words) {
			t.Errorf("no line has %q:\n%s", words, out)
		}
	}
	if code != 1 || strings.Contains(out, "you may not") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	files := bundled(t, bundle)
	for name, text := range files {
		if strings.Contains(text, secret) {
			t.Errorf("%s has the secret:\n%s", name, text)
		}
	}
	for name, words := range map[string]string{
		"pavprovisioners": "name: doctored", "pavvolumes": "pvc-" + string(claim.UID), "workflow-pods": creation.Name, "csidrivers": "name: doctored",
		"agent-deployment": "name: controller-agent", "agent-daemonset": "name: node-agent", "doctor": "result: problem", "versions": "kubernetes: v1.",
		"pavstages": "", "pavbuckets": "", "pavbucketaccesses": "", "csinodes": "", "agent-pods": "", "events": "",
	} {
		if text, is := files["pav-bundle/"+name+".yaml"]; !is || !strings.Contains(text, words) {
			t.Errorf("%s.yaml lacks %q:\n%s", name, words, text)
		}
	}
	end(t, c, creation, workflow.Result{}, 0)
	bound(t, c, claim)
}

func TestDoctor_WithoutRights_SaysWhichAreLacking(t *testing.T) {
	c := start(t)
	out, code := askDoctor(t, c, envtest.User{Name: "doctors-nobody"})
	if known := strings.Contains(out, "\nproblem") || strings.Contains(out, "\nok"); known || code != 2 {
		t.Errorf("exit status %d:\n%s", code, out)
	}
	for _, words := range [][]string{
		{"unknown", "definitions", "you may not get customresourcedefinitions"}, {"unknown", "versions", "you may not list pods in namespace pav"},
		{"unknown", "leftovers", "you may not list persistentvolumeclaims in all namespaces"},
	} {
		if !lineHas(out, words) {
			t.Errorf("no line has %q:\n%s", words, out)
		}
	}
}

// lineHas reports whether a line has all the words.
func lineHas(text string, words []string) bool {
next:
	for line := range strings.Lines(text) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		return true
	}
	return false
}
