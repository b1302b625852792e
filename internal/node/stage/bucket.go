package stage

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// bucketAccount returns the number of the account whose credentials a staging pod that is created now gets, or an earlier one; nil if the
// volume is no bucket. The Secret may have those of a later account by now. Accounts from this one on work while the stage exists.
func (t *task) bucketAccount(ctx context.Context) (*int32, error) {
	if t.stage.Spec.Bucket == nil {
		return nil, nil
	}
	volume := &corev1.PersistentVolume{}
	if err := json.Unmarshal(t.stage.Spec.Volume.Raw, volume); err != nil {
		return nil, fmt.Errorf("reading the persistent volume of PavStage %q: %w", t.stage.Name, err)
	}
	record, err := t.recordOf(ctx, volume)
	if err != nil || record == nil {
		return nil, err
	}
	return record.Status.BucketAccount, nil
}
