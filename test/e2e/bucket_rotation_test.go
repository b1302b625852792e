package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// overlap is how long former accounts work. Kubelet shows a changed Secret to a pod later than PaV has written it: it has as long as
	// any step of the tests. The test shortens the overlap once the client has the new keys.
	overlap = stepTimeout

	// restOfOverlap is what is left of it then.
	restOfOverlap = 5 * time.Second
)

// A client of a real S3 server reads its keys from a volume before each request, while its account is replaced twice. None of its requests
// fails. The former accounts work as long as the overlap lasts, and then are refused.
func TestRotation_ClientThatReadsItsKeysAgain_SeesNoFailedRequest(t *testing.T) {
	t.Parallel()
	e := newRotatedExample(t, "bucket-rotation", replacing("bucketAccessGrant:\n", "bucketAccessGrant:\n    overlap: "+overlap.String()+"\n"))
	claim := e.claimAnother(t)
	e.run(t, requestingPod(claim.Name))
	accounts := []string{account(t, claim)}
	e.awaitRequests(t, accounts[0], 1)
	for range 2 {
		next := e.rotate(t, claim, accounts[len(accounts)-1])
		accounts = append(accounts, next)
		// Kubelet looks at the Secrets of a pod that was changed at once, and otherwise about once a minute.
		_, err := kubectl(t.Context(), "", "-n", e.namespace, "annotate", "--overwrite", "pod", "client", "account="+next)
		must(t, err)
		e.awaitRequests(t, next, 1)
	}
	former, present := accounts[:2], accounts[2]
	for _, each := range accounts {
		e.wantAnswer(t, each, "200")
	}

	endOverlap(t, claim, former)
	for _, each := range former {
		e.wantAnswer(t, each, "403 InvalidAccessKeyId")
	}
	if got, want := e.accounts(t), "<Access>"+present+"\n"; got != want {
		t.Errorf("the server has the accounts %q, want %q", got, want)
	}
	e.awaitRequests(t, present, e.requests(t)[present].succeeded+10)
	used := e.requests(t)
	for each, of := range used {
		if !slices.Contains(accounts, each) || of.succeeded == 0 || len(of.failed) > 0 {
			t.Errorf("with account %s, %d requests succeeded, and %d failed: %q", each, of.succeeded, len(of.failed), of.failed)
		}
	}
	if len(used) != len(accounts) {
		t.Errorf("the client has used the accounts %+v, want %q", used, accounts)
	}

	// The client would have noted a failure: it goes on with keys that end with their claim.
	removeBucket(t, claim)
	e.awaitInClient(t, "grep -q '^"+present+" failed: ' /tmp/requests")
	e.end(t, "client", "s3-admin")
}

// newRotatedExample serves the example of buckets, edited, by another name and on a server of its own. When the test ends, nothing may be left
// of it.
func newRotatedExample(t *testing.T, name string, change edit) *example {
	t.Helper()
	e := &example{name: name, namespace: exampleNamespace(t, name)}
	for _, image := range []string{"s3-tools.tar", "versitygw.tar"} {
		must(t, imageLoads[image]())
	}
	admin := &corev1.Secret{
		ObjectMeta: objectMeta(workflow.DefaultNamespace, name),
		StringData: map[string]string{"AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "open-sesame"},
	}
	must(t, kube.Create(t.Context(), admin))
	t.Cleanup(func() { remove(t, admin) })
	applyFile(t, e.namespace, "examples/2-object-store/server.yaml")
	_, err := kubectl(t.Context(), "", "-n", e.namespace, "wait", "--for=condition=Ready", "pod/s3", "--timeout="+stepTimeout.String())
	must(t, err)
	server := e.server(t)
	e.run(t, s3Admin(server))

	yaml, err := os.ReadFile("examples/9-buckets/provisioner.yaml")
	must(t, err)
	definition := change(strings.ReplaceAll(string(yaml), "name: buckets", "name: "+name))
	apply(t, "default", documents(definition, storageClass(name)+fmt.Sprintf("parameters: {endpoint: %q}\n", "http://"+server)))
	t.Cleanup(func() {
		if t.Failed() {
			explain(t, e.namespace)
		}
		e.removeAll(t)
		eventually(t, "nothing is left of "+e.name, e.nothingLeft)
	})
	return e
}

// requestingPod returns a client of a claim that sends two requests a second at most, forever: more would disturb the tests beside it. In
// /tmp/requests it notes the account of each, and "ok" or what failed; in /tmp/keys it has the keys of all accounts that it has seen.
func requestingPod(claim string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: client
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: %[1]s
      envFrom: [{configMapRef: {name: %[2]s}}]
      command: [bash, -uc]
      args:
        - |
%[3]s
      volumeMounts: [{name: keys, mountPath: /keys}]
  volumes: [{name: keys, secret: {secretName: %[2]s}}]
`, s3Tools, claim, indent(requestingScript, 10))
}

// requestingScript reads both keys from the same version of the Secret: kubelet replaces the directory with all of its files.
const requestingScript = `
. s3.sh
S3_ENDPOINT=http://$BUCKET_HOST:$BUCKET_PORT number=0
read_keys() {
  local version
  version=$(readlink -f /keys/..data) && AWS_ACCESS_KEY_ID=$(<"$version/AWS_ACCESS_KEY_ID") && AWS_SECRET_ACCESS_KEY=$(<"$version/AWS_SECRET_ACCESS_KEY")
}
answered() {
  request "$@"
  want "$1 of $number" 200
  [[ $1 != GET || $reply == "$number" ]] || fail "GET of $number: got $reply"
}
send() {
  local result=ok error
  until read_keys 2>/dev/null; do sleep 0.1; done
  printf %s "$AWS_SECRET_ACCESS_KEY" >"/tmp/keys/$AWS_ACCESS_KEY_ID"
  error=$(answered "$@" 2>&1) || result="failed: ${error//$'\n'/ }"
  printf '%s %s\n' "$AWS_ACCESS_KEY_ID" "$result" >>/tmp/requests
}
mkdir /tmp/keys
while true; do
  number=$((number + 1))
  send PUT "/$BUCKET_NAME/number" "$number"
  send GET "/$BUCKET_NAME/number"
  sleep 1
done
`

// rotate requests another account of a claim, and returns it when PaV has delivered its keys. PaV replaces an account once in 10 minutes at
// most: the present one is made to look old enough.
func (e *example) rotate(t *testing.T, claim *obcv1.ObjectBucketClaim, present string) string {
	t.Helper()
	changeAccess(t, accessOf(claim), age)
	now := time.Now().UTC().Format(pavv1.RetryFormat)
	_, err := kubectl(t.Context(), "", "-n", claim.Namespace, "annotate", "--overwrite", "objectbucketclaim", claim.Name, pavv1.RotateAnnotation+"="+now)
	must(t, err)
	var record *pavv1.PavBucketAccess
	eventually(t, "the account of claim "+claim.Name+" is replaced", func(ctx context.Context) error {
		record = accessOf(claim)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if status := record.Status; status.Phase != pavv1.AccessReady || status.Current == nil || status.Current.AccountID == present {
			return fmt.Errorf("the record has the status %+v", status)
		}
		return nil
	})
	current := record.Status.Current
	wantCredentials(t, claim, current.AccountID)
	wantBucketEvent(t, claim, "AccessRotated", current.AccountID)
	former := record.Status.Former
	if i := slices.IndexFunc(former, func(a pavv1.GrantedAccount) bool { return a.AccountID == present }); i < 0 || former[i].RevokeAfter == nil {
		t.Errorf("the former accounts are %+v, want %s among them", former, present)
	} else if got := former[i].RevokeAfter.Sub(current.GrantedAt.Time); got != overlap {
		t.Errorf("account %s is revoked after %s, want %s", present, got, overlap)
	}
	if next := podplan.NextRotation(record, &pavv1.BucketAccessGrant{}); !next.IsZero() {
		t.Errorf("account %s, which was requested once, is to be replaced at %s", current.AccountID, next)
	}
	return current.AccountID
}

// endOverlap lets the overlap of all former accounts of a claim be over soon, and waits until PaV has revoked them.
func endOverlap(t *testing.T, claim *obcv1.ObjectBucketClaim, former []string) {
	t.Helper()
	changeAccess(t, accessOf(claim), func(status *pavv1.PavBucketAccessStatus) {
		if len(status.Former) != len(former) {
			t.Errorf("the former accounts are %+v, want %q", status.Former, former)
		}
		soon := metav1.NewTime(time.Now().Add(restOfOverlap))
		for i := range status.Former {
			status.Former[i].RevokeAfter = &soon
		}
	})
	eventually(t, "the former accounts of claim "+claim.Name+" are revoked", func(ctx context.Context) error {
		record := accessOf(claim)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if len(record.Status.Former) > 0 {
			return fmt.Errorf("the record has the status %+v", record.Status)
		}
		return nil
	})
}

// age makes the present account look old enough to be replaced.
func age(status *pavv1.PavBucketAccessStatus) {
	aged := metav1.NewTime(status.Current.GrantedAt.Add(-podplan.RotationPause))
	status.Current.GrantedAt = &aged
}

// changeAccess changes the record of an access, unless PaV has changed it meanwhile: then it tries again.
func changeAccess(t *testing.T, record *pavv1.PavBucketAccess, change func(*pavv1.PavBucketAccessStatus)) {
	t.Helper()
	eventually(t, "the access "+record.Name+" is changed", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		if record.Status.Current == nil {
			return errors.New("it has no account")
		}
		before := record.DeepCopy()
		change(&record.Status)
		return kube.Status().Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// answers are those that the client has had with an account.
type answers struct {
	succeeded int
	failed    []string
}

// requests returns what came of the requests of the client, by account.
func (e *example) requests(t *testing.T) map[string]answers {
	t.Helper()
	found := map[string]answers{}
	for line := range strings.Lines(e.sh(t, "client", "cat /tmp/requests")) {
		account, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		of := found[account]
		if result == "ok" {
			of.succeeded++
		} else {
			of.failed = append(of.failed, result)
		}
		found[account] = of
	}
	return found
}

// awaitRequests waits until so many requests of the client have succeeded with an account.
func (e *example) awaitRequests(t *testing.T, account string, count int) {
	t.Helper()
	e.awaitInClient(t, fmt.Sprintf("test \"$(grep -cx '%s ok' /tmp/requests)\" -ge %d", account, count))
}

// awaitInClient waits in the client until a command succeeds: one that is asked again and again would disturb a small machine.
func (e *example) awaitInClient(t *testing.T, command string) {
	t.Helper()
	e.sh(t, "client", fmt.Sprintf("end=$(($(date +%%s) + %.0f)); until %s; do test $(date +%%s) -lt $end || exit 1; sleep 1; done", stepTimeout.Seconds(), command))
}

// wantAnswer fails the test unless the server answers the client, if that uses the keys of an account, with a status and a code.
func (e *example) wantAnswer(t *testing.T, account, want string) {
	t.Helper()
	got := e.sh(t, "client", `bash -euc '. s3.sh; S3_ENDPOINT=http://$BUCKET_HOST:$BUCKET_PORT AWS_ACCESS_KEY_ID=`+account+
		`; AWS_SECRET_ACCESS_KEY=$(cat /tmp/keys/$AWS_ACCESS_KEY_ID); request GET /$BUCKET_NAME/number; echo $status $code'`)
	if strings.TrimSpace(got) != want {
		t.Errorf("account %s gets the answer %q, want %q", account, got, want)
	}
}
