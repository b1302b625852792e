package bucket

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// A tenant must not leave any number of buckets of which nobody knows whether they exist.
func TestCheckCount(t *testing.T) {
	record := func(name string, edits ...func(*pavv1.PavBucket)) pavv1.PavBucket {
		b := pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon)}}
		b.Spec.Provisioner, b.Spec.ClaimRef.Namespace, b.Status.Attempt = "p", "tenant", 1
		for _, edit := range edits {
			edit(&b)
		}
		return b
	}
	retained := func(b *pavv1.PavBucket) { b.Status.Phase = pavv1.BucketRetained }
	mayExist := func(b *pavv1.PavBucket) { b.Status.MayExist = true }
	elsewhere := func(b *pavv1.PavBucket) { b.Spec.ClaimRef.Namespace = "other" }
	later := func(b *pavv1.PavBucket) {
		b.CreationTimestamp, b.Status.Attempt = metav1.NewTime(noon.Add(time.Minute)), 0
	}
	for name, test := range map[string]struct {
		others []pavv1.PavBucket
		want   string // in the refusal; "" for none
		not    string
	}{
		"none":                          {},
		"one that is in use":            {others: []pavv1.PavBucket{record("b-2")}, want: "has 1 buckets", not: "may exist"},
		"one of another namespace":      {others: []pavv1.PavBucket{record("b-2", elsewhere)}},
		"one that was requested later":  {others: []pavv1.PavBucket{record("b-2", later)}},
		"one that is retained":          {others: []pavv1.PavBucket{record("b-2", retained)}},
		"one that may exist":            {others: []pavv1.PavBucket{record("b-2", retained, mayExist)}, want: `1 may exist although their claims are gone, such as that of PavBucket "b-2"`},
		"one of another that may exist": {others: []pavv1.PavBucket{record("b-2", retained, mayExist, elsewhere)}},
		"one that may exist, and whose claim is there": {
			others: []pavv1.PavBucket{record("b-2", mayExist)}, want: "has 1 buckets", not: "although",
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := record("b-1", func(b *pavv1.PavBucket) {
				b.CreationTimestamp, b.Status.Attempt = metav1.NewTime(noon.Add(time.Second)), 0
			})
			err := checkCount(append(test.others, own), &own, 1)
			if (err != nil) != (test.want != "") || err != nil && !podplan.IsRefusal(err) {
				t.Fatalf("got %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.want) || test.not != "" && strings.Contains(err.Error(), test.not)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
