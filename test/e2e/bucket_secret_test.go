package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

// A grant pod that gives its credentials away as well as it can, and fails. They are nowhere but in Secrets, neither then nor when access is
// granted in the end, nor when a revocation pod prints them. The account of each attempt is revoked before the next attempt begins.
func TestCredentials_OfAGrantPodThatPrintsThem_AreNotExposed(t *testing.T) {
	t.Parallel()
	const name = "bucket-canary"
	const credential = canary + "-" + name // as newSecret makes it
	newSecret(t, name)
	const given = "envFrom: [{secretRef: {name: " + name + "}}]"
	s := newBucketStore(t, name, with("grant container", given), with("revoke container", given))
	s.hook(t, "grant", `
printf %s "$key" > accessSecretKey
cat accessKeyId accessSecretKey; cat accessSecretKey >&2
printf 'the store refuses %s, which is %s in base64' "$key" "$(printf %s "$key" | base64 -w 10)" > /pav/error
exit 3`)
	claim := s.claimBucket(t, s.namespace, "photos", obcv1.ObjectBucketClaimSpec{GenerateBucketName: "photos"})
	wantBucketEvent(t, claim, "AccessGrantFailed", "exit code 3", "the store refuses ***, which is *** in base64")
	eventually(t, "the record says what failed, without the credential", func(ctx context.Context) error {
		access := accessOf(claim)
		if err := kube.Get(ctx, client.ObjectKeyFromObject(access), access); err != nil {
			return err
		}
		if f := access.Status.Failure; f == nil || !strings.Contains(f.Message, "the store refuses ***") || f.Log != "" {
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
	wantNotBound(t, claim)
	must(t, wantUnexposed(t.Context(), credential, claim, workflow.DefaultNamespace+"/"+name))

	s.hook(t, "grant", `printf %s "$key" > accessSecretKey; echo "$key"`)
	awaitBucket(t, claim)
	if got := string(read(t, secretOf(claim)).Data[obcv1.AWSSecretAccessKey]); got != credential {
		t.Error("the Secret of the claim has another key")
	}
	s.wantAccess(t, claim.Spec.BucketName, account(t, claim))
	must(t, wantUnexposed(t.Context(), credential, claim, workflow.DefaultNamespace+"/"+name))

	s.hook(t, "revoke", `echo "$key"; exit 3`)
	must(t, kube.Delete(t.Context(), claim))
	wantBucketEvent(t, claim, "AccessRevocationFailed", "exit code 3")
	must(t, wantUnexposed(t.Context(), credential, claim, workflow.DefaultNamespace+"/"+name))
	s.unhook(t, "revoke")
	removeBucket(t, claim)
	must(t, s.oneAccountAtATime())
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

// wantUnexposed objects if a credential is anywhere but in the claim's Secret and some others: in events, records, logs of agents, etcd, or
// files of PaV and kubelet on the nodes. It must find the claim's record where that is.
func wantUnexposed(ctx context.Context, credential string, claim *obcv1.ObjectBucketClaim, others ...string) error {
	access := accessOf(claim).Name
	s := newSearch()
	s.secrets = append(inBase64(credential), credential)
	s.known = map[string]map[string]bool{inEvents: {access: false}, inRecords: {access: false}, inLogs: {`"level"`: false}, inEtcd: {access: false}, inFiles: {}}
	for kind, kinds := range map[string]string{
		inEvents: "events", inRecords: "pavprovisioners,pavbuckets,pavbucketaccesses,objectbucketclaims,objectbuckets,configmaps,pods",
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
		secret, is := strings.CutPrefix(key, "/registry/secrets/")
		if !is || !slices.Contains(append(others, claim.Namespace+"/"+claim.Name), secret) {
			s.look(inEtcd, key, key+" "+string(value))
		}
	}); err != nil {
		return err
	}
	for _, node := range nodes {
		if err := s.lookAtFiles(ctx, node); err != nil {
			return err
		}
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
	for _, key := range []string{first, "/registry/secrets/pav/webhook-certificate", last} {
		if in, seen := found[key]; !seen || !in && key != "/registry/secrets/pav/webhook-certificate" {
			t.Errorf("%s is seen among %d keys: %t, and what it has: %t", key, len(found), seen, in)
		}
	}
}
