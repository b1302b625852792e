package bucket

import (
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// formerly records that an earlier attempt may have made a bucket.
func formerly(s *state) { s.record.Status.MayExist, s.record.Status.MayExistID = true, "former" }

// created has the record name a creation pod that is over.
func created(text string, code int32) edit {
	return func(s *state) {
		step(pavv1.BucketCreating)(s)
		stray(ended(code), result(text))(s)
		s.record.Status.Pod.Name, s.record.Status.Pod.UID = "stray", "stray"
	}
}

// The definition may have changed after an attempt that may have made a bucket. That one is not forgotten with the next attempt's bucket.
func TestMayExist_OfAnotherBucketThanTheNextAttempts(t *testing.T) {
	for name, test := range map[string]struct {
		state state
		want  func(*pavv1.PavBucketStatus) bool
		told  string // in an event; "" for none
	}{
		"the next attempt makes another": {requested(chosen, formerly, created(`{"bucketId":"other"}`, 0)),
			func(s *pavv1.PavBucketStatus) bool { return s.Phase == pavv1.BucketReady && !s.MayExist }, `bucket "former" may exist`},
		"the next attempt makes the same": {requested(chosen, formerly, created(`{"bucketId":"former"}`, 0)),
			func(s *pavv1.PavBucketStatus) bool { return s.Phase == pavv1.BucketReady && !s.MayExist }, ""},
		"the next attempt may have made another": {requested(chosen, formerly, created(`{"bucketId":"other"}`, 1)),
			func(s *pavv1.PavBucketStatus) bool { return s.MayExist && s.MayExistID == "other" }, `bucket "former" may exist`},
		"another is reverted": {requested(chosen, formerly, step(pavv1.BucketReverting), func(s *state) {
			s.record.Status.BucketID, s.record.Status.Pod, s.provisioner.Spec.BucketDeletion = "other", nil, nil
		}), func(s *pavv1.PavBucketStatus) bool { return s.MayExist && s.MayExistID == "former" && s.Step == "" }, ""},
		"the same is reverted": {requested(chosen, formerly, step(pavv1.BucketReverting), func(s *state) {
			s.record.Status.BucketID, s.record.Status.Pod, s.provisioner.Spec.BucketDeletion = "former", nil, nil
		}), func(s *pavv1.PavBucketStatus) bool { return !s.MayExist && s.Step == "" }, ""},
		"the claim goes": {requested(chosen, formerly, released, failed(0)),
			func(s *pavv1.PavBucketStatus) bool {
				return s.Phase == pavv1.BucketRetained && s.BucketID == "former"
			}, `bucket "former" may exist`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.state)
			w.pass(t)
			if status := w.record(t).Status; !test.want(&status) {
				t.Errorf("the status is %+v", status)
			}
			if test.told != "" && !w.told(test.told) {
				t.Error("there is no event")
			} else if test.told == "" && w.told("may exist") {
				t.Error("there is an event")
			}
		})
	}
}
