package collect

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestUnpublish_OfACreationPodOfABucket(t *testing.T) {
	host := filepath.Join(t.TempDir(), "file")
	write(t, host, secret)
	files := func(files map[string]string) func(*testing.T, string) {
		return func(t *testing.T, pav string) {
			t.Helper()
			for name, text := range files {
				must(t, os.MkdirAll(filepath.Dir(pav+"/"+name), 0o755))
				write(t, pav+"/"+name, text)
			}
		}
	}
	many := func(count, size int) func(*testing.T, string) {
		all := map[string]string{}
		for i := range count {
			all["info/extra/"+strconv.Itoa(i)] = strings.Repeat("x", size)
		}
		return files(all)
	}
	longest := strings.Repeat("x", 2048)
	for name, test := range map[string]struct {
		leave func(t *testing.T, pav string)
		want  workflow.Result
	}{
		"nothing": {files(nil), workflow.Result{}},
		"all of it": {files(map[string]string{
			"bucketId": "photos\n", "created": "", "info/endpoint": "https://s3.example\n", "info/region": "", "info/extra/CA.crt": "a\nb\n", "error": "a warning", "infeasible": "x",
		}), workflow.Result{
			BucketID: "photos", Created: true, Info: map[string]string{"endpoint": "https://s3.example", "region": "", "extra/CA.crt": "a\nb"}, Error: "a warning", Infeasible: new("x"),
		}},
		"what is of others": {files(map[string]string{"handle": "h", "capacity": "1", "accountId": "a", "expires": "x", "credentials/accessKeyId": secret, "snapshotHandle": "s"}), workflow.Result{}},
		"the longest ID":    {files(map[string]string{"bucketId": longest + "\r\n"}), workflow.Result{BucketID: longest}},
		"a longer one":      {files(map[string]string{"bucketId": longest + "x"}), unreadableAs("bucketId", "it has more than 2048 bytes")},
		"an ID of no text":  {files(map[string]string{"bucketId": "a\x00"}), unreadableAs("bucketId", "it has a control character")},
		"created with text": {files(map[string]string{"created": "yes\x00" + longest}), workflow.Result{Created: true}},
		"created is a link": {func(t *testing.T, pav string) { t.Helper(); must(t, os.Symlink(host, pav+"/created")) },
			unreadableAs("created", "it is a symbolic link, or something is mounted over it")},
		"created is a directory": {func(t *testing.T, pav string) { t.Helper(); must(t, os.Mkdir(pav+"/created", 0o755)) }, unreadableAs("created", "it is not a regular file")},
		"a mount over all of it": {func(t *testing.T, pav string) {
			t.Helper()
			must(t, unix.Mount("test", pav, "tmpfs", 0, "mode=755"))
			write(t, pav+"/created", "")
		}, workflow.Result{Unreadable: map[string]string{
			"bucketId": notLink, "created": notLink, "info": notLink, "error": notLink, "infeasible": notLink,
		}}},
		"info is a file":   {files(map[string]string{"info": ""}), unreadableAs("info", "it is not a directory")},
		"info is a link":   {func(t *testing.T, pav string) { t.Helper(); must(t, os.Symlink("/", pav+"/info")) }, unreadableAs("info", notLink)},
		"too many values":  {many(65, 1), unreadableAs("info", "it has more than 64 files")},
		"as many as fit":   {many(8, 4096), workflow.Result{Info: map[string]string{"extra/0": x4k, "extra/1": x4k, "extra/2": x4k, "extra/3": x4k, "extra/4": x4k, "extra/5": x4k, "extra/6": x4k, "extra/7": x4k}}},
		"too many bytes":   {many(33, 1000), unreadableAs("info", "its files have more than 32768 bytes together")},
		"a value too long": {many(1, 4097), unreadableAs("info/extra/0", "it has more than 4096 bytes")},
		"hostile values": {func(t *testing.T, pav string) {
			t.Helper()
			files(map[string]string{"info/endpoint": "e", "info/host": "\x1b[2J", "info/region": "\xff", "info/a\nb": "x", "info/ÜÜ": "x"})(t, pav)
			must(t, os.Symlink(host, pav+"/info/port"))
			must(t, unix.Mkfifo(pav+"/info/projectId", 0o644))
			must(t, os.MkdirAll(pav+"/info/extra/below", 0o755))
			write(t, pav+"/info/large", "")
			must(t, os.Truncate(pav+"/info/large", 10<<30))
		}, workflow.Result{Info: map[string]string{"endpoint": "e"}, Unreadable: map[string]string{
			"info/host": "it has a control character", "info/region": "it is not valid UTF-8", `info/"a\nb"`: notPlain, `info/"\u00dc\u00dc"`: notPlain,
			"info/port": notLink, "info/projectId": "it is not a regular file", "info/extra/below": "it is not a regular file", "info/large": "it has more than 4096 bytes",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowBucketCreation}
			n.publish(t)
			test.leave(t, n.target)
			wantFound(t, n, true)
			if diff := cmp.Diff(test.want, n.result(t)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if strings.Contains(n.results[0], secret) || strings.Contains(n.results[0], n.kubelet) {
				t.Errorf("the result has what is private: %s", n.results[0])
			}
			n.wantGone(t)
		})
	}
}

const notPlain = "its name has other characters than letters, digits, '-', '_' and '.'"

var x4k = strings.Repeat("x", 4096)

// Whatever a pod leaves, the API server accepts its result: all annotations of a pod may have 256 KiB, and those of its template 64.
func TestEncode_OfTheLargestResults_Fits(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, pav string){
		"what clients are told of a bucket": func(t *testing.T, pav string) {
			t.Helper()
			must(t, os.MkdirAll(pav+"/info/extra", 0o755))
			for i := range 64 {
				name := strconv.Itoa(i) + strings.Repeat("k", 251)
				if i >= 33 {
					name = strings.Repeat("\n", 100) + strconv.Itoa(i)
				}
				write(t, pav+"/info/extra/"+name, strings.Repeat(`"`, 990))
			}
		},
		"files with names that are none": func(t *testing.T, pav string) {
			t.Helper()
			must(t, os.Mkdir(pav+"/info", 0o755))
			for i := range 64 {
				write(t, pav+"/info/"+strconv.Itoa(i)+strings.Repeat("\x01", 251), "")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowBucketCreation}
			n.publish(t)
			leave(t, n.target)
			write(t, n.target+"/error", strings.Repeat(`"`, 4096))
			write(t, n.target+"/infeasible", strings.Repeat(`"`, 4096))
			write(t, n.target+"/bucketId", strings.Repeat(`"`, 2048))
			wantFound(t, n, true)
			if size := len(n.results[0]); size > 190<<10 {
				t.Errorf("the result has %d bytes", size)
			}
			n.wantGone(t)
		})
	}
}

func TestEncode_OfTheMostCredentials_Fits(t *testing.T) {
	g := newGrantNode(t)
	must(t, os.Mkdir(g.target+"/credentials/extra", 0o755))
	for i := range 64 {
		write(t, g.target+"/credentials/extra/"+strconv.Itoa(i)+strings.Repeat("k", 251), strings.Repeat("\xff", 768))
	}
	g.leaves(t, map[string]string{"error": strings.Repeat(`"`, 4096), "infeasible": strings.Repeat(`"`, 4096), "accountId": strings.Repeat(`"`, 2048)})
	wantFound(t, g.node, true)
	if size := len(g.results[0]); size > 190<<10 || len(g.opened(t)) != 64 {
		t.Errorf("the result has %d bytes", size)
	}
	g.wantGone(t)
}

func TestUnpublish_OfACreationPodOfABucket_AfterARestartOfTheNode_SaysWhatIsLost(t *testing.T) {
	n := newNode(t)
	n.pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowBucketCreation}
	n.publish(t)
	write(t, n.target+"/created", "")
	n.boot = pavdir.Boot{BootID: "boot 2"}
	wantFound(t, n, true)
	want := workflow.Result{Unreadable: map[string]string{"bucketId": restarted, "created": restarted, "info": restarted, "error": restarted}}
	if diff := cmp.Diff(want, n.result(t)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	n.wantGone(t)
}
