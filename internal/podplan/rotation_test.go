package podplan

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestNextRotation(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(d))) }
	granted := func(edits ...func(*pavv1.GrantedAccount)) *pavv1.GrantedAccount {
		account := &pavv1.GrantedAccount{GrantedAt: at(-time.Hour)}
		for _, edit := range edits {
			edit(account)
		}
		return account
	}
	expires := func(d time.Duration) func(*pavv1.GrantedAccount) {
		return func(a *pavv1.GrantedAccount) { a.ExpiresAt = at(d) }
	}
	for name, test := range map[string]struct {
		current   *pavv1.GrantedAccount
		every     time.Duration
		class     string
		requested time.Duration
		handled   bool
		held      int
		want      time.Time
	}{
		"nothing is granted":                   {every: time.Hour},
		"never":                                {current: granted()},
		"regularly":                            {current: granted(), every: 3 * time.Hour, want: noon.Add(2 * time.Hour)},
		"before the credentials end":           {current: granted(expires(2 * time.Hour)), want: noon.Add(time.Hour)},
		"whichever is first":                   {current: granted(expires(2 * time.Hour)), every: 90 * time.Minute, want: noon.Add(30 * time.Minute)},
		"never twice within ten minutes":       {current: granted(), every: time.Minute, want: noon.Add(-50 * time.Minute)},
		"as its class says":                    {current: granted(), every: 3 * time.Hour, class: "2h", want: noon.Add(time.Hour)},
		"more often than is allowed":           {current: granted(), every: 3 * time.Hour, class: "1m", want: noon.Add(2 * time.Hour)},
		"as requested":                         {current: granted(), every: 3 * time.Hour, requested: -time.Minute, want: noon.Add(-time.Minute)},
		"as was requested before":              {current: granted(), requested: -time.Minute, handled: true},
		"requested before it was granted":      {current: granted(), requested: -2 * time.Hour},
		"nodes have few former accounts":       {current: granted(), every: 3 * time.Hour, held: maxHeld - 1, want: noon.Add(2 * time.Hour)},
		"nodes have many former accounts":      {current: granted(), every: 3 * time.Hour, held: maxHeld},
		"many are held, and the last one ends": {current: granted(expires(2 * time.Hour)), every: time.Hour, held: maxHeld, want: noon.Add(time.Hour)},
		"many are held, and one is requested":  {current: granted(), every: 3 * time.Hour, held: maxHeld, requested: -time.Minute, want: noon.Add(-time.Minute)},
		"requested in the minute it was made":  {current: granted(), requested: -59 * time.Minute, want: noon.Add(-50 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			record := &pavv1.PavBucketAccess{Status: pavv1.PavBucketAccessStatus{Current: test.current}}
			record.Status.Former = append(make([]pavv1.GrantedAccount, 2), slices.Repeat([]pavv1.GrantedAccount{{Held: true}}, test.held)...)
			if test.class != "" {
				record.Spec.Parameters = map[string]string{pavv1.RotateEveryParameter: test.class}
			}
			if test.requested != 0 {
				text := noon.Add(test.requested).Format(pavv1.RetryFormat)
				record.Annotations = map[string]string{pavv1.RotateAnnotation: text}
				if test.handled {
					record.Status.Current.RequestedAt = at(test.requested + time.Second)
				}
			}
			if got := NextRotation(record, &pavv1.BucketAccessGrant{RotateEvery: new(metav1.Duration{Duration: test.every})}); !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
