package objectstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAccess_IsWhatIsGranted(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.do(t, "create_bucket bucket uid; create_bucket another uid; request PUT /bucket/object content")
	writer, reader, both, stranger := g.addUser(t, "writer"), g.addUser(t, "reader"), g.addUser(t, "both"), g.addUser(t, "stranger")
	g.do(t, `set_policy bucket '[{"accountId": "writer", "mode": "ReadWrite"}, {"accountId": "reader", "mode": "ReadOnly"},
		{"accountId": "both", "mode": "ReadOnly"}, {"accountId": "both", "mode": "ReadWrite"}]'`)
	const denied, noAdmin = "403 AccessDenied", "403 XAdminAccessDenied"
	tests := []struct {
		request                        string
		writer, reader, both, stranger string
	}{
		{"GET /bucket/object", "200", "200", "200", denied},
		{"GET /bucket?list-type=2", "200", "200", "200", denied},
		{"GET /bucket?location=", "200", "200", "200", denied},
		{"PUT /bucket/new content", "200", denied, "200", denied},
		{"DELETE /bucket/new", "204", denied, "204", denied},
		{"POST /bucket/large?uploads=", "200", denied, "200", denied},
		// What makes the bucket the claim's, and others' access, is the administrator's.
		{"DELETE /bucket?policy=", denied, denied, denied, denied},
		{"GET /bucket?policy=", denied, denied, denied, denied},
		{"DELETE /bucket?tagging=", denied, denied, denied, denied},
		{"DELETE /bucket", denied, denied, denied, denied},
		{"PUT /new-bucket", denied, denied, denied, denied},
		{"GET /another?list-type=2", denied, denied, denied, denied},
		{"PATCH /list-users", noAdmin, noAdmin, noAdmin, noAdmin},
	}
	var requests []string
	want := map[Account][]string{}
	for _, test := range tests {
		requests = append(requests, test.request)
		for account, answer := range map[Account]string{writer: test.writer, reader: test.reader, both: test.both, stranger: test.stranger} {
			want[account] = append(want[account], answer)
		}
	}
	for account, answers := range want {
		printed, _ := g.call(t, account, `set -f; for line; do request $line; echo "${status}${code:+ $code}"; done`, requests...)
		if diff := cmp.Diff(answers, strings.Split(printed, "\n")); diff != "" {
			t.Errorf("answers to %q as %s (-want +got):\n%s", requests, account.Key, diff)
		}
	}
}

func TestAccess_EndsAtOnce(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.do(t, "create_bucket bucket uid")
	list := []string{"GET", "/bucket?list-type=2"}
	old := g.addUser(t, "user")
	g.do(t, `set_policy bucket '[{"accountId": "user", "mode": "ReadOnly"}]'`)
	current := g.addUser(t, "user")
	for _, step := range []struct {
		name, script string
		account      Account
		want         string
	}{
		{"a replaced secret key", "", old, "403 SignatureDoesNotMatch"},
		{"the new secret key", "", current, "200"},
		{"without a grant", "set_policy bucket '[]'; set_policy bucket '[]'", current, "403 AccessDenied"},
		{"granted again", `set_policy bucket '[{"accountId": "user", "mode": "ReadOnly"}]'`, current, "200"},
		{"deleted", "delete_user user", current, "403 InvalidAccessKeyId"},
	} {
		g.do(t, step.script)
		if got := g.answer(t, step.account, list...); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

func TestUser_LosesAnotherRole(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	const admin = "<Account><Access>user</Access><Secret>secret</Secret><Role>admin</Role></Account>"
	g.do(t, `request PATCH /create-user "$1"; want create 201`, admin)
	if got := g.answer(t, g.addUser(t, "user"), "PATCH", "/list-users"); got != "403 XAdminAccessDenied" {
		t.Errorf("an administrator who was reset gets %s", got)
	}
	const notFound = "setting the secret key of account admin: XAdminUserNotFound No user exists with the provided access key ID. (HTTP status 404)"
	g.refuses(t, notFound, `echo secret > "$1"; reset_user admin "$1"`, filepath.Join(t.TempDir(), "secret"))
	g.refuses(t, "the secret key of account user is empty, or has characters that are not of Base64", "reset_user user /dev/null")
}

// All processes of a node can read arguments.
func TestSecrets_AreNoArguments(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	directory := t.TempDir()
	record := filepath.Join(directory, "record")
	curl := fmt.Sprintf("#!%[1]s/sh\nprintf '%%s\\n' \"$@\" >>%[2]s\nexec %[1]s/curl \"$@\"\n", programs, record)
	if err := os.WriteFile(filepath.Join(directory, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	g.do(t, `PATH=$1:$PATH; echo secret-of-user > "$1/secret"; reset_user user "$1/secret"; reset_user user "$1/secret"`, directory)
	recorded, err := os.ReadFile(record)
	text := string(recorded)
	if err != nil || strings.Count(text, g.Endpoint) != 3 {
		t.Errorf("curl is not called three times (%v):\n%s", err, text)
	}
	if strings.Contains(text, "secret-of-user") || strings.Contains(text, Admin.Secret) {
		t.Errorf("a secret key is an argument of curl:\n%s", text)
	}
}

// The same list is written by many at a time, over another one.
func TestPolicy_WrittenConcurrently(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.addUser(t, "old")
	g.addUser(t, "new")
	reader := g.addUser(t, "reader")
	const before = `[{"accountId": "old", "mode": "ReadWrite"}, {"accountId": "reader", "mode": "ReadWrite"}]`
	g.do(t, `create_bucket bucket uid; set_policy bucket "$1"`, before)
	const grants = `[{"accountId": "new", "mode": "ReadWrite"}, {"accountId": "reader", "mode": "ReadOnly"}]`
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { g.do(t, `set_policy bucket "$1"`, grants) })
	}
	calls.Wait()
	g.do(t, `request GET '/bucket?policy='; [[ $reply == "$(policy bucket "$1")" ]] || fail "$reply"`, grants)
	policy := g.do(t, `request GET '/bucket?policy='; jq -c '[.Statement[].Principal.AWS]' <<<"$reply"`)
	if want := `[["reader"],["new"]]`; policy != want {
		t.Errorf("the policy is for %s, want %s", policy, want)
	}
	if got := g.answer(t, reader, "PUT", "/bucket/object", "content"); got != "403 AccessDenied" {
		t.Errorf("writing with the new mode: %s", got)
	}
}

func TestPolicy_LeavesOutLostAccounts(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.do(t, "create_bucket bucket uid")
	user := g.addUser(t, "user")
	const grants = `[{"accountId": "lost", "mode": "ReadWrite"}, {"accountId": "user", "mode": "ReadOnly"}]`
	if got, want := g.do(t, `set_policy bucket "$1"`, grants), "bucket bucket: left out accounts that do not exist"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
	if got := g.answer(t, user, "GET", "/bucket?list-type=2"); got != "200" {
		t.Errorf("the other account gets %s", got)
	}
	g.do(t, `delete_user user; set_policy bucket "$1"`, grants)
	if got := g.answer(t, Admin, "GET", "/bucket?policy="); got != "404 NoSuchBucketPolicy" {
		t.Errorf("if all accounts are lost, the policy is %s", got)
	}
}

func TestPolicy_OfNoListIsNotWritten(t *testing.T) {
	t.Parallel()
	g := Start(t, Options{})
	g.do(t, "create_bucket bucket uid")
	user := g.addUser(t, "user")
	g.do(t, `set_policy bucket '[{"accountId": "user", "mode": "ReadOnly"}]'`)
	for _, grants := range []string{
		"", "no JSON", `{}`, `null`, `"text"`, `["user"]`, `[{"accountId": "user"}]`, `[{"mode": "ReadOnly"}]`,
		`[{"accountId": "user", "mode": "Read"}]`, `[{"accountId": "*", "mode": "ReadOnly"}]`, `[{"accountId": "user\n*", "mode": "ReadOnly"}]`,
	} {
		g.refuses(t, strings.TrimSpace("no list of grants: "+grants), `set_policy bucket "$1"`, grants)
	}
	if got := g.answer(t, user, "GET", "/bucket?list-type=2"); got != "200" {
		t.Errorf("afterwards, the user gets %s", got)
	}
	const unknown = "setting the policy of bucket unknown: NoSuchBucket The specified bucket does not exist. (HTTP status 404)"
	g.refuses(t, unknown, "set_policy unknown '[]'")
}
