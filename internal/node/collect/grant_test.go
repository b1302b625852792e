package collect

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/credentials"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// canary is a credential. Nothing that is written may have it, in any form.
const canary = "canary/9876543210+abc"

// grantNode is a node with a grant pod, and what only the controller agent has: the key to open its credentials.
type grantNode struct {
	*node
	key  credentials.Key
	logs *strings.Builder
}

func newGrantNode(t *testing.T) *grantNode {
	t.Helper()
	key, err := credentials.NewKey()
	must(t, err)
	g := &grantNode{node: newNode(t), key: key, logs: &strings.Builder{}}
	g.log = funcr.New(func(prefix, args string) { fmt.Fprintln(g.logs, prefix, args) }, funcr.Options{Verbosity: 10})
	g.pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowGrant}
	g.pod.Annotations = map[string]string{pavv1.SealAnnotation: key.Public}
	g.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: "PavBucketAccess", Name: "a", UID: "access-uid", Controller: new(true)}}
	g.publishGrant(t)
	return g
}

func (g *grantNode) publishGrant(t *testing.T) {
	t.Helper()
	must(t, g.Publish(t.Context(), volume, pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID, Credentials: true}, g.target))
}

// leaves writes files of the pod, by path below /pav.
func (g *grantNode) leaves(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(g.target+"/"+name), 0o755))
		write(t, g.target+"/"+name, text)
	}
}

// opened returns the credentials in the result, as the controller agent opens them.
func (g *grantNode) opened(t *testing.T) map[string]string {
	t.Helper()
	sealed := g.result(t).Sealed
	if sealed == nil {
		return nil
	}
	opened, err := credentials.Open(g.key.Private, credentials.Purpose{Access: "access-uid", Pod: podUID}, sealed)
	must(t, err)
	texts := map[string]string{}
	for name, value := range opened {
		texts[name] = string(value)
	}
	return texts
}

// wantNoCanary checks that nothing that was written has the canary: no patch, no log, and no file on the node's disk.
func (g *grantNode) wantNoCanary(t *testing.T) {
	t.Helper()
	disk := t.TempDir()
	must(t, unix.Mount(g.kubelet, disk, "", unix.MS_BIND, "")) // without what is mounted below it
	defer func() { must(t, unix.Unmount(disk, 0)) }()
	written := map[string]string{"the log": g.logs.String(), "the patches": strings.Join(g.patches, "\n")}
	must(t, filepath.WalkDir(disk, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		written["the name of "+path] = entry.Name()
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			written[path] = string(content)
			return err
		}
		return nil
	}))
	for what, text := range written {
		for _, form := range []string{canary, canary[:8], "9876543210", base64.StdEncoding.EncodeToString([]byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary))[4:20]} {
			if strings.Contains(text, form) {
				t.Errorf("%s has the canary as %q", what, form)
			}
		}
	}
}

func TestUnpublish_OfAGrantPod_SealsItsCredentials(t *testing.T) {
	g := newGrantNode(t)
	left := map[string]string{"accessKeyId": "the-user", "accessSecretKey": canary + "\n", "extra/TOKEN": "\x00\xff" + canary, "certificateAuthority": ""}
	for name, text := range left {
		g.leaves(t, map[string]string{"credentials/" + name: text})
	}
	g.leaves(t, map[string]string{
		"accountId": "the-user\n", "expires": " 2030-01-01T00:00:00Z\n", "handle": "h", "bucketId": "b", "created": "", "info/endpoint": "e", "error": "with " + canary,
	})
	g.wantNoCanary(t)
	wantFound(t, g.node, true)
	got := g.result(t)
	if diff := cmp.Diff(left, g.opened(t)); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	got.Sealed = nil
	if diff := cmp.Diff(workflow.Result{AccountID: "the-user", Expires: "2030-01-01T00:00:00Z", Error: "with ***"}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if len(g.patches) != 1 {
		t.Errorf("there are %d writes", len(g.patches))
	}
	g.wantNoCanary(t)
	g.wantGone(t)
	if found, err := g.Unpublish(t.Context(), volume, g.target); found || err != nil {
		t.Errorf("once more: %t, %v", found, err)
	}
}

const (
	notLink    = "it is a symbolic link, or something is mounted over it"
	notRegular = "it is not a regular file"
	notKnown   = "it is none of the credentials that PaV knows, and not below extra/"
	notTold    = "it is not told, as it may have a credential that could not be read"
)

func TestUnpublish_OfAHostileGrantPod(t *testing.T) {
	host := filepath.Join(t.TempDir(), "file")
	write(t, host, canary)
	do := func(act func(dir string) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); must(t, act(dir)) }
	}
	many := func(count, size int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.MkdirAll(dir+"/extra", 0o755))
			for i := range count {
				write(t, dir+"/extra/"+strconv.Itoa(i), strings.Repeat("x", size))
			}
		}
	}
	for name, test := range map[string]struct {
		leave      func(t *testing.T, dir string)
		unreadable map[string]string
		opened     map[string]string
		whole      bool // whether /pav/error can be told
	}{
		"no credentials":          {do(func(string) error { return nil }), nil, nil, true},
		"a name that is none":     {do(func(dir string) error { return os.WriteFile(dir+"/secretKey", []byte(canary), 0o600) }), map[string]string{"credentials/secretKey": notKnown}, nil, true},
		"a name of another case":  {do(func(dir string) error { return os.WriteFile(dir+"/AccessKeyId", []byte(canary), 0o600) }), map[string]string{"credentials/AccessKeyId": notKnown}, nil, true},
		"a name with a newline":   {do(func(dir string) error { return os.WriteFile(dir+"/a\nb", []byte(canary), 0o600) }), map[string]string{`credentials/"a\nb"`: notKnown}, nil, true},
		"a name that is no text":  {do(func(dir string) error { return os.WriteFile(dir+"/\xff\x1b", []byte(canary), 0o600) }), map[string]string{`credentials/"\xff\x1b"`: notKnown}, nil, true},
		"a name that is a secret": {do(func(dir string) error { return os.WriteFile(dir+"/x0123456789", []byte("x0123456789"), 0o600) }), map[string]string{`credentials/"***"`: notKnown}, nil, true},
		"a key that is none": {do(func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/extra", 0o755), os.WriteFile(dir+"/extra/..a", nil, 0o600))
		}), map[string]string{"credentials/extra/..a": notKnown}, nil, true},
		"a link": {do(func(dir string) error { return os.Symlink(host, dir+"/accessKeyId") }), map[string]string{"credentials/accessKeyId": notLink}, nil, false},
		"a link beside it": {do(func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/accessToken", []byte(canary), 0o600), os.Symlink("accessToken", dir+"/accessKeyId"))
		}), map[string]string{"credentials/accessKeyId": notLink}, map[string]string{"accessToken": canary}, false},
		"a named pipe": {do(func(dir string) error { return unix.Mkfifo(dir+"/accessKeyId", 0o644) }), map[string]string{"credentials/accessKeyId": notRegular}, nil, false},
		"a device": {do(func(dir string) error {
			return unix.Mknod(dir+"/accessKeyId", unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5)))
		}), map[string]string{"credentials/accessKeyId": notRegular}, nil, false},
		"a directory":     {do(func(dir string) error { return os.Mkdir(dir+"/accessKeyId", 0o755) }), map[string]string{"credentials/accessKeyId": notRegular}, nil, false},
		"extra is a file": {do(func(dir string) error { return os.WriteFile(dir+"/extra", nil, 0o600) }), map[string]string{"credentials/extra": "it is not a directory"}, nil, false},
		"a mount over a file": {do(func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/accessKeyId", nil, 0o600), unix.Mount(host, dir+"/accessKeyId", "", unix.MS_BIND, ""))
		}), map[string]string{"credentials/accessKeyId": notLink}, nil, false},
		"a mount over all of it": {do(func(dir string) error {
			return errors.Join(unix.Mount("test", dir, "tmpfs", 0, ""), os.WriteFile(dir+"/accessKeyId", []byte(canary), 0o600))
		}), map[string]string{"credentials": notLink}, nil, false},
		"another mount": {do(func(dir string) error {
			return errors.Join(unix.Unmount(dir, 0), unix.Mount("test", dir, "tmpfs", 0, ""))
		}), map[string]string{"credentials": notLink}, nil, false},
		"no mount": {do(func(dir string) error { return unix.Unmount(dir, 0) }), map[string]string{"credentials": "it is not mounted any more"}, nil, false},
		"10 GB of nothing": {do(func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/accessKeyId", nil, 0o600), os.Truncate(dir+"/accessKeyId", 10<<30))
		}), map[string]string{"credentials/accessKeyId": "it has more than 16384 bytes"}, nil, false},
		"too many files":             {many(65, 1), map[string]string{"credentials": "it has more than 64 files"}, nil, false},
		"too many bytes in all":      {many(49, 1<<10), map[string]string{"credentials": "its files have more than 49152 bytes together"}, nil, false},
		"what is short is no canary": {do(func(dir string) error { return os.WriteFile(dir+"/accessKeyId", []byte("why"), 0o600) }), nil, map[string]string{"accessKeyId": "why"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrantNode(t)
			g.leaves(t, map[string]string{"error": "why not", "infeasible": "really"})
			test.leave(t, g.target+"/credentials")
			wantFound(t, g.node, true)
			got := g.result(t)
			want := workflow.Result{Error: "why not", Infeasible: new("really"), Sealed: got.Sealed, Unreadable: maps.Clone(test.unreadable)}
			if !test.whole {
				want.Error, want.Infeasible = "", new("")
				want.Unreadable["error"], want.Unreadable["infeasible"] = notTold, notTold
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.opened, g.opened(t)); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			g.wantNoCanary(t)
			g.wantGone(t)
		})
	}
}

// A pod writes its credentials wherever it should not.
func TestUnpublish_OfAGrantPod_TellsNoCredential(t *testing.T) {
	for name, test := range map[string]struct {
		file, text string
		want       workflow.Result
	}{
		"an error":              {"error", "key " + canary + " was refused", workflow.Result{Error: "key *** was refused"}},
		"an error of only that": {"error", canary, workflow.Result{Error: "***"}},
		"an error, in base64":   {"error", base64.StdEncoding.EncodeToString([]byte(canary)) + "!", workflow.Result{Error: "***!"}},
		"an error, with a name": {"error", "Basic " + base64.StdEncoding.EncodeToString([]byte("us:"+canary+"\n")), workflow.Result{Error: "Basic dXM6***Cg=="}},
		"a promise":             {"infeasible", "no " + canary, workflow.Result{Infeasible: new("no ***")}},
		"an account":            {"accountId", "u-" + canary, workflow.Result{Unreadable: map[string]string{"accountId": "it has a credential"}}},
		"a time":                {"expires", canary, workflow.Result{Unreadable: map[string]string{"expires": "it has a credential"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrantNode(t)
			g.leaves(t, map[string]string{"credentials/accessSecretKey": canary, test.file: test.text})
			wantFound(t, g.node, true)
			got := g.result(t)
			got.Sealed = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			g.wantNoCanary(t)
		})
	}
}

func TestUnpublish_OfAGrantPod_WithoutAKey_TellsWhy(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		why    string
	}{
		"no annotation":         {func(p *corev1.Pod) { p.Annotations = nil }, "its files cannot be sealed: the pod has no annotation pav.albertofaria.github.io/seal"},
		"an annotation of text": {func(p *corev1.Pod) { p.Annotations[pavv1.SealAnnotation] = "?" }, "its files cannot be sealed: decoding a public key: illegal base64 data at input byte 0"},
		"no controller":         {func(p *corev1.Pod) { p.OwnerReferences = nil }, "its files cannot be sealed: the pod is not controlled by a PavBucketAccess"},
		"another controller":    {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "PavBucket" }, "its files cannot be sealed: the pod is not controlled by a PavBucketAccess"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrantNode(t)
			g.leaves(t, map[string]string{"credentials/accessSecretKey": canary, "accountId": "a", "error": canary})
			test.change(g.pod)
			wantFound(t, g.node, true)
			want := workflow.Result{AccountID: "a", Error: "***", Unreadable: map[string]string{"credentials": test.why}}
			if diff := cmp.Diff(want, g.result(t)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			g.wantNoCanary(t)
			g.wantGone(t)
		})
	}
}

// A revocation pod has no credentials to give, whatever it writes.
func TestUnpublish_OfARevocationPod_IgnoresCredentials(t *testing.T) {
	g := newGrantNode(t)
	g.pod.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowRevocation
	g.leaves(t, map[string]string{"credentials/accessSecretKey": canary, "accountId": "a", "expires": "never", "error": "why"})
	wantFound(t, g.node, true)
	if diff := cmp.Diff(workflow.Result{Error: "why"}, g.result(t)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	g.wantNoCanary(t)
	g.wantGone(t)
}

// Whatever is interrupted, the result comes once, and can be opened.
func TestUnpublish_OfAGrantPod_IsRepeated(t *testing.T) {
	away := errors.New("connection refused")
	for name, fail := range map[string]func(call int) (bool, error){
		"the pod cannot be read":          func(call int) (bool, error) { return call > 1, errorAt(call, 1, away) },
		"the patch is refused":            func(call int) (bool, error) { return call != 2, errorAt(call, 2, away) },
		"the answer to the patch is lost": func(call int) (bool, error) { return true, errorAt(call, 2, away) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrantNode(t)
			g.leaves(t, map[string]string{"credentials/accessSecretKey": canary})
			g.fail = fail
			if _, err := g.Unpublish(t.Context(), volume, g.target); !errors.Is(err, away) || strings.Contains(err.Error(), canary) {
				t.Errorf("got error %v", err)
			}
			g.publishGrant(t) // Kubelet was restarted.
			wantFound(t, g.node, true)
			if diff := cmp.Diff(map[string]string{"accessSecretKey": canary}, g.opened(t)); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			g.wantNoCanary(t)
			g.wantGone(t)
		})
	}
}

func errorAt(call, at int, err error) error {
	if call == at {
		return err
	}
	return nil
}

func TestUnpublish_OfAGrantPod_AfterARestartOfTheNode_SaysWhatIsLost(t *testing.T) {
	for name, reboot := range map[string]func(t *testing.T, g *grantNode){
		"another boot": func(_ *testing.T, g *grantNode) { g.boot = pavdir.Boot{BootID: "boot 2"} },
		"/pav is unmounted": func(t *testing.T, g *grantNode) {
			t.Helper()
			must(t, unix.Unmount(g.target+"/credentials", 0))
			must(t, unix.Unmount(g.target, 0))
			must(t, mount.Unmount(t.Context(), filepath.Join(g.kubelet, "plugins", pavv1.Driver, "pods", volume)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrantNode(t)
			g.leaves(t, map[string]string{"credentials/accessSecretKey": canary, "accountId": "a"})
			reboot(t, g)
			wantFound(t, g.node, true)
			const why = "the node was restarted, or /pav unmounted, before it could be read"
			want := workflow.Result{Unreadable: map[string]string{"accountId": why, "expires": why, "credentials": why, "error": why}}
			if diff := cmp.Diff(want, g.result(t)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			g.wantGone(t)
		})
	}
}

func TestReport_OfAGrantPodThatCreatesReady(t *testing.T) {
	g := newGrantNode(t)
	g.pod.Spec = running().Spec
	g.pod.Status = running().Status
	g.leaves(t, map[string]string{"credentials/accessSecretKey": canary, "error": "a warning about " + canary, "ready": ""})
	for range 2 {
		must(t, g.Report(t.Context(), g.pod.DeepCopy()))
	}
	if diff := cmp.Diff(map[string]string{"accessSecretKey": canary}, g.opened(t)); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	if got := g.result(t); !got.Ready || got.Error != "a warning about ***" {
		t.Errorf("got %+v", got)
	}
	wantFound(t, g.node, true)
	g.wantNoCanary(t)
	g.wantGone(t)
}

// keeping keeps the files that were read.
type keeping struct {
	Directories
	files *[]pavdir.File
}

// ReadPodFiles implements Directories.
func (k keeping) ReadPodFiles(ctx context.Context, id, directory string, most, limit int) ([]pavdir.File, error) {
	files, err := k.Directories.ReadPodFiles(ctx, id, directory, most, limit)
	*k.files = files
	return files, err
}

func TestRead_OverwritesCredentialsInMemory(t *testing.T) {
	g := newGrantNode(t)
	g.leaves(t, map[string]string{"credentials/accessSecretKey": canary, "credentials/other": canary})
	var files []pavdir.File
	g.dirs = keeping{g.dirs, &files}
	wantFound(t, g.node, true)
	for _, file := range files {
		if len(file.Content) != len(canary) || strings.Trim(string(file.Content), "\x00") != "" {
			t.Errorf("%s is left: %q", file.Name, file.Content)
		}
	}
	if len(files) != 2 || g.opened(t)["accessSecretKey"] != canary {
		t.Errorf("read were %d files", len(files))
	}
}
