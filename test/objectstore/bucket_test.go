package objectstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Where the gateway keeps its metadata makes no difference. Nothing is left in the end.
func TestBucket_CreatedAndDeletedTwice(t *testing.T) {
	for name, options := range map[string]Options{"metadata in files": {}, "metadata in attributes": {Attributes: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := Start(t, options)
			g.do(t, "create_bucket bucket uid-1; create_bucket bucket uid-1")
			user := g.addUser(t, "user")
			g.do(t, `set_policy bucket '[{"accountId": "user", "mode": "ReadWrite"}]'`)
			for _, object := range [][]string{{"directory/"}, {"directory/object", "content"}, {"%3Ca%26b%3E%0A%22%C3%BC", "content"}} {
				if got := g.answer(t, user, append([]string{"PUT", "/bucket/" + object[0]}, object[1:]...)...); got != "200" {
					t.Errorf("creating object %s: %s", object[0], got)
				}
			}
			// The gateway lists 1,000 objects at a time.
			for i := range 1200 {
				if err := os.WriteFile(filepath.Join(g.Directory, "data", "bucket", fmt.Sprint("object-", i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			g.do(t, "create_bucket bucket uid-1; delete_bucket bucket uid-1; delete_bucket bucket uid-1")
			g.do(t, "create_bucket bucket uid-2; delete_bucket bucket uid-2; delete_user user; delete_user user")
			g.Stop(t)
			if err := g.command.Process.Signal(syscall.Signal(0)); err == nil {
				t.Error("the gateway still runs")
			}
			for _, name := range []string{"data", "metadata"} {
				if left, err := os.ReadDir(filepath.Join(g.Directory, name)); err != nil || len(left) > 0 {
					t.Errorf("left in the directory of %s: %v (%v)", name, left, err)
				}
			}
			accounts, err := os.ReadFile(filepath.Join(g.Directory, "accounts", "users.json"))
			if want := `{"accessAccounts":{}}`; err != nil || string(accounts) != want {
				t.Errorf("accounts: %s (%v), want %s", accounts, err, want)
			}
		})
	}
}

func TestBucket_IsFound(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	const tell = `if has_bucket "$1"; then echo yes; else echo no; fi`
	for _, step := range []struct{ script, want string }{
		{"", "no"}, {"create_bucket bucket uid", "yes"}, {"delete_bucket bucket uid", "no"},
	} {
		g.do(t, step.script)
		if got := g.do(t, tell, "bucket"); got != step.want {
			t.Errorf("after %q, there is a bucket: %s, want %s", step.script, got, step.want)
		}
	}
	g.refuses(t, "no name of a bucket: a/b", tell, "a/b")
}

func TestBucket_OfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	const tags = "<CreateBucketConfiguration><Tags><Tag><Key>a</Key><Value>uid-2</Value></Tag></Tags></CreateBucketConfiguration>"
	g.do(t, `create_bucket claimed uid-1; request PUT /bare; want create 200; request PUT /tagged "$1"; want create 200`, tags)
	for _, bucket := range []string{"claimed", "tagged", "bare"} {
		// The second time, it is as it was the first time.
		for range 2 {
			g.refuses(t, "bucket "+bucket+" exists, and was not created for this claim", `create_bucket "$1" uid-2`, bucket)
		}
	}
	for _, bucket := range []string{"claimed", "tagged", "bare"} {
		g.refuses(t, "bucket "+bucket+" was not created for this claim, and is left as it is", `request PUT "/$1/object" content; delete_bucket "$1" uid-2`, bucket)
		g.do(t, `request GET "/$1/object"; want get 200`, bucket)
	}
	g.do(t, "create_bucket claimed uid-1")
}

// The gateway accepts names of objects that XML cannot express. Nobody can delete such an object by the API that lists them.
func TestBucket_WithAnObjectThatCannotBeListed(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.do(t, "create_bucket bucket uid; request PUT /bucket/a%01 content; want create 200")
	g.refuses(t, "bucket bucket keeps objects that were deleted, the first is <Key>a\uFFFD</Key>", "delete_bucket bucket uid")
	g.do(t, "request DELETE /bucket/a%01; delete_bucket bucket uid")
}

func TestNames_ThatChangeARequestAreRefused(t *testing.T) {
	t.Parallel()
	// Nothing answers there.
	g := &Gateway{Endpoint: "http://127.0.0.1:1"}
	for _, name := range []string{"", ".", "..", "a/b", "a?policy=", "bucket#", "Bucket", "bucket\n", "-bucket", "a&b", "b%2fc"} {
		for _, function := range []string{"create_bucket", "delete_bucket", "set_policy"} {
			g.refuses(t, strings.TrimSpace("no name of a bucket: "+name), function+` "$1" uid`, name)
		}
	}
	for _, name := range []string{"", "a/b", "a?b=", "a&b=c", "<a>", "a b", "a\n"} {
		g.refuses(t, strings.TrimSpace("no name of an account: "+name), `reset_user "$1" /dev/null`, name)
		g.refuses(t, strings.TrimSpace("no name of an account: "+name), `delete_user "$1"`, name)
	}
	g.refuses(t, "no UID: a<b", "create_bucket bucket 'a<b'")
	g.refuses(t, "no UID: a<b", "delete_bucket bucket 'a<b'")
	g.refuses(t, "no answer from http://127.0.0.1:1", "create_bucket bucket uid")
}

func TestFunctions_PassShellcheck(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "shellcheck", "--shell=bash", "s3.sh").CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}
