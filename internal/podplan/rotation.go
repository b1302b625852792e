package podplan

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

const (
	// RotationPause is the shortest time between two rotations of an access.
	RotationPause = 10 * time.Minute

	// overlap is how long the former account of an access works after a rotation, by default.
	overlap = time.Hour

	// maxHeld is how many former accounts of a volume may be held for nodes before the volume gets no others by itself. A node may have a
	// volume staged for years, and each account that it may have works, and is in the policy of the bucket, until the volume is unstaged.
	maxHeld = 8
)

// Overlap returns how long a former account works after a rotation; the default if a definition grants no access any more.
func Overlap(grant *pavv1.BucketAccessGrant) time.Duration {
	if grant == nil || grant.Overlap == nil {
		return overlap
	}
	return grant.Overlap.Duration
}

// NextRotation returns when the present account of an access is to be replaced; the zero time for never. Grant is nil if the definition
// grants no access any more.
func NextRotation(record *pavv1.PavBucketAccess, grant *pavv1.BucketAccessGrant) time.Time {
	current := record.Status.Current
	if current == nil || current.GrantedAt == nil || grant == nil {
		return time.Time{}
	}
	granted := current.GrantedAt.Time
	var at time.Time
	if every := rotateEvery(record, grant); every > 0 && HeldAccounts(record) < maxHeld {
		at = granted.Add(every)
	}
	if current.ExpiresAt != nil {
		// Two thirds of the way, so that there is time for attempts that fail.
		if before := granted.Add(current.ExpiresAt.Sub(granted) * 2 / 3); at.IsZero() || before.Before(at) {
			at = before
		}
	}
	if requested, err := time.Parse(time.RFC3339Nano, record.Annotations[pavv1.RotateAnnotation]); err == nil && requested.After(current.Began()) && (at.IsZero() || requested.Before(at)) {
		at = requested
	}
	if earliest := granted.Add(RotationPause); !at.IsZero() && at.Before(earliest) {
		return earliest
	}
	return at
}

// rotateEvery returns how often an access gets a new account; 0 for never. A class can say so, too.
func rotateEvery(record *pavv1.PavBucketAccess, grant *pavv1.BucketAccessGrant) time.Duration {
	if text, ok := record.Spec.Parameters[pavv1.RotateEveryParameter]; ok {
		if every, err := time.ParseDuration(text); err == nil && every >= RotationPause {
			return every
		}
	}
	if grant.RotateEvery != nil {
		return grant.RotateEvery.Duration
	}
	return 0
}

// HeldAccounts returns how many former accounts of an access are held for nodes.
func HeldAccounts(record *pavv1.PavBucketAccess) int {
	count := 0
	for i := range record.Status.Former {
		if record.Status.Former[i].Held {
			count++
		}
	}
	return count
}
