package access

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(d))) }

func account(number int32, edits ...func(*pavv1.GrantedAccount)) pavv1.GrantedAccount {
	a := pavv1.GrantedAccount{Number: number, AccountName: accountName("u", number), GrantedAt: at(-time.Hour)}
	for _, edit := range edits {
		edit(&a)
	}
	return a
}

func until(d time.Duration) func(*pavv1.GrantedAccount) {
	return func(a *pavv1.GrantedAccount) { a.RevokeAfter = at(d) }
}

func called(id string) func(*pavv1.GrantedAccount) {
	return func(a *pavv1.GrantedAccount) { a.AccountID = id }
}

func neverGranted(a *pavv1.GrantedAccount) { a.GrantedAt = nil }

// accessTo returns an access to buckets, all in one mode.
func accessTo(name string, mode pavv1.BucketAccessMode, current *pavv1.GrantedAccount, former []pavv1.GrantedAccount, buckets ...string) pavv1.PavBucketAccess {
	a := pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.Spec.Requester.UID = "u"
	for _, bucket := range buckets {
		a.Spec.Buckets = append(a.Spec.Buckets, pavv1.AccessedBucket{Bucket: bucket, Mode: mode})
	}
	a.Status.Current, a.Status.Former = current, former
	return a
}

// The policy of a bucket is written from this list: it has who has access, and nobody else.
func TestGrantsOn(t *testing.T) {
	accesses := []pavv1.PavBucketAccess{
		accessTo("a-2", pavv1.AccessReadOnly, new(account(0, called("reader"))), nil, "b-1", "b-2"),
		accessTo("a-1", pavv1.AccessReadWrite, new(account(2, called("writer"))), []pavv1.GrantedAccount{
			account(0, called("over"), until(-time.Second)), account(1, called("overlaps"), until(time.Minute)), account(3, neverGranted, until(time.Minute)),
			account(4, called("staged"), until(-time.Second), func(a *pavv1.GrantedAccount) { a.Held = true }),
		}, "b-1"),
		accessTo("a-3", pavv1.AccessReadWrite, nil, nil, "b-1"),
		accessTo("a-5", pavv1.AccessReadWrite, new(account(0, called("of-nobody"), shared)), []pavv1.GrantedAccount{account(1, called("of-nobody"), shared, until(time.Minute))}, "b-1"),
		accessTo("a-4", pavv1.AccessReadWrite, new(account(0, called("elsewhere"))), nil, "b-2"),
	}
	grant := func(id string, mode pavv1.BucketAccessMode) podplan.BucketGrant {
		return podplan.BucketGrant{AccountID: id, Mode: mode}
	}
	reader, writer, overlapping, staged := grant("reader", pavv1.AccessReadOnly), grant("writer", pavv1.AccessReadWrite), grant("overlaps", pavv1.AccessReadWrite), grant("staged", pavv1.AccessReadWrite)
	for name, test := range map[string]struct {
		of            string
		with, without *pavv1.GrantedAccount
		want          []podplan.BucketGrant
	}{
		"as it is":                             {want: []podplan.BucketGrant{overlapping, reader, staged, writer}},
		"with a first account":                 {of: "a-3", with: new(account(0)), want: []podplan.BucketGrant{grant("ba-u", pavv1.AccessReadWrite), overlapping, reader, staged, writer}},
		"with the account that replaces one":   {of: "a-2", with: new(account(1)), want: []podplan.BucketGrant{grant("ba-u-1", pavv1.AccessReadOnly), overlapping, reader, staged, writer}},
		"without the present account":          {of: "a-2", without: new(account(0)), want: []podplan.BucketGrant{overlapping, staged, writer}},
		"without a former account":             {of: "a-1", without: new(account(1)), want: []podplan.BucketGrant{reader, staged, writer}},
		"without one that was never granted":   {of: "a-1", without: new(account(3)), want: []podplan.BucketGrant{overlapping, reader, staged, writer}},
		"the numbers of others are not meant":  {of: "a-3", without: new(account(0)), want: []podplan.BucketGrant{overlapping, reader, staged, writer}},
		"an account that is granted once more": {of: "a-2", with: new(account(0, called("reader"))), want: []podplan.BucketGrant{overlapping, reader, staged, writer}},
	} {
		t.Run(name, func(t *testing.T) {
			got := grantsOn([]string{"b-1"}, accesses, test.of, test.with, test.without, noon)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
			slices.Reverse(accesses)
			if again := grantsOn([]string{"b-1"}, accesses, test.of, test.with, test.without, noon); !slices.Equal(got, again) {
				t.Errorf("in another order: %v", again)
			}
			slices.Reverse(accesses)
		})
	}
	if none := grantsOn([]string{"b-9"}, accesses, "", nil, nil, noon); none == nil || len(none) > 0 {
		t.Errorf("a bucket without accesses has the grants %v; the list must be empty, and not absent", none)
	}
}

func TestDue(t *testing.T) {
	for name, test := range map[string]struct {
		former   []pavv1.GrantedAccount
		released bool
		want     int32 // -1 for none
		when     time.Time
	}{
		"none":                             {want: -1},
		"one whose time is not over":       {former: []pavv1.GrantedAccount{account(0, until(time.Minute))}, want: -1, when: noon.Add(time.Minute)},
		"one whose time is over":           {former: []pavv1.GrantedAccount{account(0, until(0))}, want: 0, when: noon},
		"the first of two":                 {former: []pavv1.GrantedAccount{account(1, until(-time.Second)), account(0, until(-time.Minute))}, want: 0, when: noon.Add(-time.Minute)},
		"one of an attempt that failed":    {former: []pavv1.GrantedAccount{account(1, until(time.Minute)), account(2, neverGranted)}, want: 2},
		"any, if the access is not wanted": {former: []pavv1.GrantedAccount{account(0, until(time.Minute))}, released: true, want: 0, when: noon.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			record := accessTo("a", pavv1.AccessReadWrite, nil, test.former, "b")
			record.Spec.Released = test.released
			got, when := due(&record, noon)
			number := int32(-1)
			if got != nil {
				number = got.Number
			}
			if number != test.want || !when.Equal(test.when) {
				t.Errorf("got %d at %v; want %d at %v", number, when, test.want, test.when)
			}
		})
	}
}

func TestNextAccount_HasANumberOfItsOwn(t *testing.T) {
	record := accessTo("a", pavv1.AccessReadWrite, nil, nil, "b")
	if got := nextAccount(&record); got.Number != 0 || got.AccountName != "ba-u" {
		t.Errorf("the first is %+v", got)
	}
	record.Status.Current, record.Status.Former = new(account(1)), []pavv1.GrantedAccount{account(0), account(4)}
	if got := nextAccount(&record); got.Number != 5 || got.AccountName != "ba-u-5" {
		t.Errorf("the next is %+v", got)
	}
	record.Status.Current, record.Status.Former, record.Status.Accounts = nil, nil, 6
	if got := nextAccount(&record); got.Number != 6 {
		t.Errorf("after all were revoked, the next is %+v", got)
	}
}
