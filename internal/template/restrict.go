package template

import (
	"context"
	"fmt"
	"slices"
)

// Lookups limits the claims that get_pvc looks up for a volume.
type Lookups struct {
	// Own is the namespace of the volume's claim, which is always allowed.
	Own string

	// Allowed are the other namespaces; nil for all.
	Allowed []string

	// Foreign, if it is not nil, is called for each look-up in another namespace than Own, with whether it is allowed.
	Foreign func(ctx context.Context, name, namespace string, allowed bool)
}

// Restrict returns get for the claims that are allowed.
func (l Lookups) Restrict(get GetPVC) GetPVC {
	return func(ctx context.Context, name, namespace string) (map[string]any, error) {
		if namespace == l.Own {
			return get(ctx, name, namespace)
		}
		allowed := l.Allowed == nil || slices.Contains(l.Allowed, namespace)
		if l.Foreign != nil {
			l.Foreign(ctx, name, namespace, allowed)
		}
		if !allowed {
			return nil, ErrNotAllowed
		}
		return get(ctx, name, namespace)
	}
}

// ForeignLookup returns the message about a look-up in another namespace than that of the volume's claim.
func ForeignLookup(provisioner, name, namespace, own string, allowed bool) string {
	key := claimKey{name: name, namespace: namespace}
	if !allowed {
		return fmt.Sprintf("PavProvisioner %q: get_pvc(): %s: spec.allowedClaimNamespaces does not allow this for a claim of namespace %q", provisioner, key, own)
	}
	return fmt.Sprintf("PavProvisioner %q: get_pvc() read claim %s for a claim of namespace %q", provisioner, key, own)
}
