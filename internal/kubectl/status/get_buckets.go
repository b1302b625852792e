package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// BucketRow is a bucket. Its JSON is the output of -o json.
type BucketRow struct {
	// Namespace and Claim are those of the claim, whose kind follows from API.
	Namespace   string          `json:"namespace"`
	Claim       string          `json:"claim"`
	API         pavv1.BucketAPI `json:"api"`
	Provisioner string          `json:"provisioner"`

	Phase pavv1.BucketPhase `json:"phase"`
	Step  pavv1.BucketStep  `json:"step,omitempty"`

	// Bucket identifies the bucket in its store, as far as it is known.
	Bucket string `json:"bucket"`

	// Accesses is the number of accesses to the bucket.
	Accesses int `json:"accesses"`

	// Failures is the number of failed attempts to create, update or delete the bucket, whichever is in progress.
	Failures int32 `json:"failures,omitempty"`

	// Failure is the reason for which the last attempt failed, until one succeeds.
	Failure string `json:"failure,omitempty"`

	// Record is the name of the PavBucket.
	Record  string      `json:"record"`
	Created metav1.Time `json:"created"`
}

// AccessRow is an access to buckets. Its JSON is the output of -o json.
type AccessRow struct {
	// Namespace, Kind and Name are those of the object that asks for access.
	Namespace   string `json:"namespace"`
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Provisioner string `json:"provisioner"`

	Phase pavv1.AccessPhase `json:"phase"`
	Step  pavv1.AccessStep  `json:"step,omitempty"`

	// Account identifies the account that clients use in the store; empty if they have none.
	Account string `json:"account,omitempty"`

	// Former is the number of accounts that are to be revoked.
	Former int `json:"former,omitempty"`

	// Expires is when the credentials end, and Rotation when the account is to be replaced; absent if they do not, and it is not.
	Expires  *metav1.Time `json:"expires,omitempty"`
	Rotation *metav1.Time `json:"rotation,omitempty"`

	// Failures is the number of failed attempts to grant access or to revoke an account, whichever is in progress.
	Failures int32 `json:"failures,omitempty"`

	// Failure is the reason for which the last attempt failed, until one succeeds.
	Failure string `json:"failure,omitempty"`

	// Record is the name of the PavBucketAccess.
	Record  string      `json:"record"`
	Created metav1.Time `json:"created"`
}

// readBuckets returns the buckets of a provisioner, or of all if it is "", sorted by namespace and claim.
func readBuckets(ctx context.Context, reader client.Reader, provisioner string) ([]BucketRow, error) {
	g := &gatherer{reader, &Facts{}}
	records, err := g.buckets(ctx, func(b *pavv1.PavBucket) bool { return provisioner == "" || b.Spec.Provisioner == provisioner })
	if err != nil {
		return nil, err
	}
	accesses, err := g.accesses(ctx, func(*pavv1.PavBucketAccess) bool { return true })
	if err == nil && (g.hides(hiddenPavBuckets) || g.hides(hiddenPavAccesses)) {
		err = fmt.Errorf("you may not read %s", strings.Join(g.Hidden, " and "))
	}
	if err != nil {
		return nil, err
	}
	to := map[string]int{}
	for i := range accesses {
		for _, accessed := range accesses[i].Spec.Buckets {
			to[accessed.Bucket]++
		}
	}
	rows := make([]BucketRow, 0, len(records))
	for i := range records {
		rows = append(rows, rowOfBucket(&records[i], to[records[i].Name]))
	}
	slices.SortStableFunc(rows, func(a, b BucketRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim))
	})
	return rows, nil
}

func rowOfBucket(record *pavv1.PavBucket, accesses int) BucketRow {
	spec, status := &record.Spec, &record.Status
	row := BucketRow{Namespace: spec.ClaimRef.Namespace, Claim: spec.ClaimRef.Name, API: spec.API, Provisioner: spec.Provisioner, Phase: cmp.Or(status.Phase, pavv1.BucketPending),
		Step: status.Step, Bucket: idOfBucket(record), Accesses: accesses, Record: record.Name, Created: record.CreationTimestamp}
	switch {
	case status.DeletionFailure != nil:
		row.Failure, row.Failures = status.DeletionFailure.Message, failureCount(status.DeletionAttempt, status.Pod)
	case status.Failure != nil:
		row.Failure, row.Failures = status.Failure.Message, failureCount(status.Attempt, status.Pod)
	}
	return row
}

// readAccesses returns the accesses to buckets of a provisioner, or of all if it is "", sorted by namespace and name.
func readAccesses(ctx context.Context, reader client.Reader, provisioner string) ([]AccessRow, error) {
	g := &gatherer{reader, &Facts{}}
	records, err := g.accesses(ctx, func(a *pavv1.PavBucketAccess) bool { return provisioner == "" || a.Spec.Provisioner == provisioner })
	if err == nil && g.hides(hiddenPavAccesses) {
		err = fmt.Errorf("you may not read PavBucketAccesses")
	}
	if err != nil {
		return nil, err
	}
	definitions := &pavv1.PavProvisionerList{}
	if _, err := g.list(ctx, definitions, hiddenProvisioners); err != nil {
		return nil, err
	}
	rows := make([]AccessRow, 0, len(records))
	for i := range records {
		f := &Facts{}
		if at := slices.IndexFunc(definitions.Items, func(p pavv1.PavProvisioner) bool { return p.Name == records[i].Spec.Provisioner }); at >= 0 {
			f.Provisioner = &definitions.Items[at]
		}
		rows = append(rows, rowOfAccess(f, &records[i]))
	}
	slices.SortStableFunc(rows, func(a, b AccessRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows, nil
}

func rowOfAccess(f *Facts, record *pavv1.PavBucketAccess) AccessRow {
	spec, status := &record.Spec, &record.Status
	row := AccessRow{Namespace: spec.Requester.Namespace, Kind: spec.Requester.Kind, Name: spec.Requester.Name, Provisioner: spec.Provisioner,
		Phase: cmp.Or(status.Phase, pavv1.AccessPending), Step: status.Step, Former: len(status.Former), Record: record.Name, Created: record.CreationTimestamp}
	if status.Current != nil {
		row.Account, row.Expires = idOfAccount(status.Current), status.Current.ExpiresAt
	}
	if at := nextRotation(f, record); !at.IsZero() {
		row.Rotation = new(metav1.NewTime(at))
	}
	switch {
	case status.RevocationFailure != nil:
		row.Failure, row.Failures = status.RevocationFailure.Message, failureCount(status.RevocationAttempt, podOfStep(status, pavv1.AccessRevokingStep))
	case status.Failure != nil:
		row.Failure, row.Failures = status.Failure.Message, failureCount(status.Attempt, podOfStep(status, pavv1.AccessGranting))
	}
	return row
}

// podOfStep returns the pod of an access if it is that of a step, or nil.
func podOfStep(status *pavv1.PavBucketAccessStatus, step pavv1.AccessStep) *pavv1.PodReference {
	if status.Step != step {
		return nil
	}
	return status.Pod
}

// renderBuckets writes buckets as a table.
func renderBuckets(env *cli.Env, rows []BucketRow, wide bool, now time.Time) error {
	if len(rows) == 0 {
		return none(env, "buckets")
	}
	style := env.Style()
	table := newTable(style, wide, "NAMESPACE", "CLAIM", "PROVISIONER", "PHASE", "STEP", "BUCKET", "ACCESSES", "FAILURES", "AGE", "RECORD")
	for i := range rows {
		r := &rows[i]
		phase, failures := cells(style, string(r.Phase), r.Failures, r.Phase == pavv1.BucketReady)
		row := []string{r.Namespace, r.Claim, r.Provisioner, phase, dash(strings.ToLower(string(r.Step))), cli.Plain(r.Bucket), strconv.Itoa(r.Accesses), failures,
			cli.Duration(now.Sub(r.Created.Time)), r.Record}
		if wide {
			row = append(row, cli.Plain(strings.ReplaceAll(r.Failure, "\n", " | ")))
		}
		table.Row(row...)
	}
	return table.Write(env.Out, "")
}

// renderAccesses writes accesses as a table.
func renderAccesses(env *cli.Env, rows []AccessRow, wide bool, now time.Time) error {
	if len(rows) == 0 {
		return none(env, "accesses to buckets")
	}
	style := env.Style()
	table := newTable(style, wide, "NAMESPACE", "ACCESS", "PROVISIONER", "PHASE", "STEP", "ACCOUNT", "FORMER", "EXPIRES", "ROTATION", "FAILURES", "AGE", "RECORD")
	for i := range rows {
		r := &rows[i]
		phase, failures := cells(style, string(r.Phase), r.Failures, r.Phase == pavv1.AccessReady)
		row := []string{r.Namespace, r.Name, r.Provisioner, phase, dash(strings.ToLower(string(r.Step))), dash(cli.Plain(r.Account)), strconv.Itoa(r.Former),
			until(r.Expires, now), until(r.Rotation, now), failures, cli.Duration(now.Sub(r.Created.Time)), r.Record}
		if wide {
			row = append(row, cli.Plain(strings.ReplaceAll(r.Failure, "\n", " | ")))
		}
		table.Row(row...)
	}
	return table.Write(env.Out, "")
}

// until returns how far a time is away, or "-" if there is none.
func until(at *metav1.Time, now time.Time) string {
	switch {
	case at == nil:
		return "-"
	case !at.After(now):
		return "now"
	default:
		return cli.Duration(at.Sub(now))
	}
}

// cells returns a phase and a number of failures in colour.
func cells(style cli.Style, phase string, count int32, ready bool) (colouredPhase, failures string) {
	failures = strconv.Itoa(int(count))
	switch {
	case count > 0:
		return style.Bad(phase), style.Bad(failures)
	case ready:
		return style.Good(phase), failures
	}
	return phase, failures
}

// none says that there is nothing to list.
func none(env *cli.Env, what string) error {
	if _, err := fmt.Fprintf(env.ErrOut, "There are no %s.\n", what); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
