package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Where else credentials are searched for.
const (
	inRecords = "records"
	inEtcd    = "etcd"
	inFiles   = "files of PaV on the nodes"
)

// secretsInEtcd begins the keys of Secrets in etcd, which alone may have credentials.
const secretsInEtcd = "/registry/secrets/"

// asking is an object that asks for access to a bucket, and what PaV keeps and gives of it.
type asking struct {
	client.Object

	record  *pavv1.PavBucketAccess
	secret  *corev1.Secret
	keyName string                   // of the secret key in the Secret
	bucket  string                   // in the store
	granted func(client.Object) bool // whether the object says that access is granted
	remove  func(*testing.T)         // deletes what else there is, after the object
}

// A grant pod that gives its credentials away as well as it can, and fails. They are nowhere but in Secrets, neither then nor when access is
// granted in the end, nor when a revocation pod prints them. The account of each attempt is revoked before the next attempt begins.
func TestCredentials_OfAGrantPodThatPrintsThem_AreNotExposed(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*testing.T, *bucketStore) *asking{"canary-obc": askByClaim, "canary-cosi": askByCOSI} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSecret(t, name)
			given := "envFrom: [{secretRef: {name: " + name + "}}]"
			s := newBucketStore(t, name, with("grant container", given), with("revoke container", given))
			s.giveAway(t, ask)
		})
	}
}

// giveAway lets pods of a store print its Secret, whose name is the store's, at every step of an access.
func (s *bucketStore) giveAway(t *testing.T, ask func(*testing.T, *bucketStore) *asking) {
	t.Helper()
	credential := canary + "-" + s.name // as newSecret makes it
	s.hook(t, "grant", `
printf %s "$key" > accessSecretKey
cat accessKeyId accessSecretKey; cat accessSecretKey >&2
printf 'the store refuses %s, which is %s in base64' "$key" "$(printf %s "$key" | base64 -w 10)" > /pav/error
exit 3`)
	a := ask(t, s)
	a.wantEvent(t, "AccessGrantFailed", "exit code 3", "the store refuses ***, which is *** in base64")
	eventually(t, "the record says what failed, without the credential", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(a.record), a.record); err != nil {
			return err
		}
		if f := a.record.Status.Failure; f == nil || !strings.Contains(f.Message, "the store refuses ***") || f.Log != "" {
			return fmt.Errorf("it has the failure %+v", f)
		}
		return nil
	})
	eventually(t, "the second attempt is revoked, too", func(context.Context) error {
		if done, err := s.done("revoke"); err != nil || done < 2 {
			return fmt.Errorf("%d accounts were revoked (%w)", done, err)
		}
		return nil
	})
	if a.granted(read(t, a.Object)) {
		t.Error("access is granted")
	}
	a.wantUnexposed(t, credential, s.name)

	s.hook(t, "grant", `printf %s "$key" > accessSecretKey; echo "$key"`)
	eventually(t, "access is granted", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(a), a.Object); err != nil {
			return err
		}
		if !a.granted(a.Object) {
			return errors.New("it is not")
		}
		return nil
	})
	if got := string(read(t, a.secret).Data[a.keyName]); got != credential {
		t.Error("the Secret has another key")
	}
	s.wantAccess(t, a.bucket, read(t, a.record).Status.Current.AccountID)
	a.wantUnexposed(t, credential, s.name)

	s.hook(t, "revoke", `echo "$key"; exit 3`)
	must(t, kube.Delete(t.Context(), a.Object))
	a.wantEvent(t, "AccessRevocationFailed", "exit code 3")
	a.wantUnexposed(t, credential, s.name)
	s.unhook(t, "revoke")
	a.remove(t)
	awaitGone(t, a.Object, a.record, a.secret)
	must(t, s.oneAccountAtATime())
}

// askByClaim makes an ObjectBucketClaim.
func askByClaim(t *testing.T, s *bucketStore) *asking {
	t.Helper()
	claim := s.claimBucket(t, s.namespace, "photos", obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photos"})
	a := &asking{Object: claim, record: accessOf(claim), secret: secretOf(claim), keyName: obcv1.AWSSecretAccessKey}
	a.granted = func(o client.Object) bool { return o.(*obcv1.ObjectBucketClaim).Status.Phase == obcv1.ClaimBound }
	a.remove = func(t *testing.T) { awaitGone(t, objectBucketOf(claim), configMapOf(claim), bucketOf(claim)) } //nolint:thelper // It says what is not gone.
	eventually(t, "the claim has a bucket", func(ctx context.Context) error {
		record := bucketOf(claim)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			return err
		}
		a.bucket = record.Spec.BucketName
		return nil
	})
	return a
}

// askByCOSI makes a BucketClaim of COSI, and a BucketAccess to its bucket.
func askByCOSI(t *testing.T, s *bucketStore) *asking {
	t.Helper()
	buckets := &cosiv1.BucketClass{ObjectMeta: objectMeta("", s.name), DriverName: s.name, DeletionPolicy: cosiv1.DeletionPolicyDelete}
	accesses := &cosiv1.BucketAccessClass{ObjectMeta: objectMeta("", s.name), DriverName: s.name, AuthenticationType: cosiv1.AuthenticationTypeKey}
	claim := &cosiv1.BucketClaim{ObjectMeta: objectMeta(s.namespace, "photos")}
	claim.Spec = cosiv1.BucketClaimSpec{BucketClassName: s.name, Protocols: []cosiv1.Protocol{cosiv1.ProtocolS3}}
	access := &cosiv1.BucketAccess{ObjectMeta: objectMeta(s.namespace, "photos-app")}
	access.Spec = cosiv1.BucketAccessSpec{BucketClaimName: "photos", BucketAccessClassName: s.name, CredentialsSecretName: "photos-keys", Protocol: cosiv1.ProtocolS3}
	for _, object := range []client.Object{buckets, accesses, claim, access} {
		must(t, kube.Create(t.Context(), object))
		t.Cleanup(func() { remove(t, object) })
	}
	t.Cleanup(func() { s.unhook(t, "grant", "revoke") })
	a := &asking{Object: access, secret: &corev1.Secret{ObjectMeta: objectMeta(s.namespace, "photos-keys")}, keyName: "COSI_S3_ACCESS_SECRET_KEY", bucket: cosiv1.BucketOf(claim.UID)}
	a.record = &pavv1.PavBucketAccess{ObjectMeta: objectMeta("", "a-"+string(access.UID))}
	a.granted = func(o client.Object) bool { return o.(*cosiv1.BucketAccess).Status.AccessGranted }
	a.remove = func(*testing.T) {}
	return a
}

// wantEvent waits for an event of the object.
func (a *asking) wantEvent(t *testing.T, reason string, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s has an event %s", a.GetName(), reason), func(ctx context.Context) error {
		return wantEvent(ctx, a.GetNamespace(), a.GetName(), reason, words...)
	})
}

// done returns how often pods did something.
func (s *bucketStore) done(effect string) (int, error) {
	effects, err := s.effects(false)
	times := 0
	for _, all := range effects {
		for _, one := range all {
			if one == effect {
				times++
			}
		}
	}
	return times, err
}

// oneAccountAtATime objects if, by the journal, an account was made while there was another one, or if one is left.
func (s *bucketStore) oneAccountAtATime() error {
	journal, err := readFile(s.directory, "journal")
	if err != nil {
		return err
	}
	exists := ""
	for line := range strings.Lines(journal) {
		fields := strings.Fields(line)
		switch {
		case len(fields) != 3:
			return fmt.Errorf("the journal has the line %q", line)
		case fields[0] == "grant" && exists != "" && exists != fields[1]:
			return fmt.Errorf("account %s was made while there was %s:\n%s", fields[1], exists, journal)
		case fields[0] == "grant":
			exists = fields[1]
		case fields[0] == "revoke" && fields[1] == exists:
			exists = ""
		}
	}
	if exists != "" {
		return fmt.Errorf("account %s was never revoked:\n%s", exists, journal)
	}
	return nil
}

// wantUnexposed fails the test if a credential is anywhere but in the Secret of the access, and in the one that the pods have it from. What a
// pod writes to /pav/error is on the disk of its node until PaV has read it, and the pod's /pav is gone.
func (a *asking) wantUnexposed(t *testing.T, credential, from string) {
	t.Helper()
	must(t, a.wantNotTold(t.Context(), credential, from))
	eventually(t, "no file on the nodes has the credential", func(ctx context.Context) error {
		s := searchFor(credential, nil)
		for _, node := range nodes {
			if err := s.lookAtFiles(ctx, node); err != nil {
				return err
			}
		}
		return s.result()
	})
}

// searchFor returns a search for a credential, which must find what is known to be somewhere.
func searchFor(credential string, known map[string]map[string]bool) *search {
	s := newSearch()
	s.secrets, s.known = append(inBase64(credential), credential), known
	return s
}

// wantNotTold objects if a credential is in events, records, logs of agents, or etcd. It must find the record of the access where that is.
func (a *asking) wantNotTold(ctx context.Context, credential, from string) error {
	access := a.record.Name
	s := searchFor(credential, map[string]map[string]bool{inEvents: {access: false}, inRecords: {access: false}, inLogs: {`"level"`: false}, inEtcd: {access: false}})
	for kind, kinds := range map[string]string{
		inEvents: "events", inRecords: "pavprovisioners,pavbuckets,pavbucketaccesses,configmaps,pods," +
			"objectbucketclaims,objectbuckets,bucketclaims.objectstorage.k8s.io,buckets.objectstorage.k8s.io,bucketaccesses.objectstorage.k8s.io",
	} {
		text, err := kubectl(ctx, "", "get", kinds, "-A", "-o", "yaml")
		if err != nil {
			return err
		}
		s.look(kind, "kubectl get "+kinds, text)
	}
	all, err := agents(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		text, err := kubectl(ctx, "", "-n", all[i].Namespace, "logs", all[i].Name)
		if err != nil {
			return err
		}
		s.look(inLogs, all[i].Name, text)
	}
	if err := eachInEtcd(ctx, func(key string, value []byte) {
		secret, is := strings.CutPrefix(key, secretsInEtcd)
		if !is || !slices.Contains([]string{a.secret.Namespace + "/" + a.secret.Name, workflow.DefaultNamespace + "/" + from}, secret) {
			s.look(inEtcd, key, key+" "+string(value))
		}
	}); err != nil {
		return err
	}
	return s.result()
}

// lookAtFiles searches the directories that node agents have for pods, and what kubelet keeps of containers, such as termination logs. The
// directory credentials of a pod that runs is in memory, and not on the disk.
func (s *search) lookAtFiles(ctx context.Context, node string) error {
	for _, secret := range s.secrets {
		// grep ends with 1 if it finds nothing, and with 2 if a file goes meanwhile.
		found, err := onNode(ctx, node, "sh", "-c", `grep -rlF -e "$1" "$2" "$3"/*/containers 2>/dev/null || test $? != 0`, "sh", secret, pavDir+"/pods", kubeletDir+"/pods")
		if err != nil {
			return err
		}
		for file := range strings.FieldsSeq(found) {
			if !strings.Contains(file, "/credentials/") {
				s.look(inFiles, file+" of "+node, secret)
			}
		}
	}
	return nil
}

// eachInEtcd calls a function with all keys and values of the cluster's etcd, which the tests reach as they share the network of its node.
func eachInEtcd(ctx context.Context, look func(key string, value []byte)) error {
	const most = 500
	for from, end := []byte("/registry/"), []byte("/registry0"); ; {
		question, err := json.Marshal(map[string]any{"key": from, "range_end": end, "limit": most})
		if err != nil {
			return err
		}
		var answer struct {
			Kvs  []struct{ Key, Value []byte }
			More bool
		}
		if err := askEtcd(ctx, question, &answer); err != nil {
			return err
		}
		for _, entry := range answer.Kvs {
			look(string(entry.Key), entry.Value)
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return nil
		}
		from = slices.Concat(answer.Kvs[len(answer.Kvs)-1].Key, []byte{0})
	}
}

func askEtcd(ctx context.Context, question []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:2379/v3/kv/range", bytes.NewReader(question))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd: %s", response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// What is searched for in etcd can be found there, also if it comes after many keys.
func TestSearch_SeesEtcd(t *testing.T) {
	t.Parallel()
	const first, last = "/registry/apiextensions.k8s.io/customresourcedefinitions/pavbuckets." + pavv1.Group, "/registry/validatingwebhookconfigurations/pav-provisioners"
	found := map[string]bool{}
	must(t, eachInEtcd(t.Context(), func(key string, value []byte) { found[key] = strings.Contains(string(value), pavv1.Group) }))
	for _, key := range []string{first, secretsInEtcd + "pav/webhook-certificate", last} {
		if in, seen := found[key]; !seen || !in && key != secretsInEtcd+"pav/webhook-certificate" {
			t.Errorf("%s is seen among %d keys: %t, and what it has: %t", key, len(found), seen, in)
		}
	}
}
