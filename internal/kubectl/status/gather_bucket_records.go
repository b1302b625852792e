package status

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// buckets returns some of the PavBuckets, oldest first. No label has what is searched for, so this lists all.
func (g *gatherer) buckets(ctx context.Context, wanted func(*pavv1.PavBucket) bool, options ...client.ListOption) ([]pavv1.PavBucket, error) {
	var found []pavv1.PavBucket
	list := &pavv1.PavBucketList{}
	for {
		if err := g.listKnown(ctx, list, hiddenPavBuckets, append(options, client.Limit(page), client.Continue(list.Continue))...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				found = append(found, *list.Items[i].DeepCopy())
			}
		}
		if list.Continue == "" {
			slices.SortFunc(found, func(a, b pavv1.PavBucket) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return found, nil
		}
	}
}

// accesses returns some of the PavBucketAccesses, oldest first. No label has what is searched for, so this lists all.
func (g *gatherer) accesses(ctx context.Context, wanted func(*pavv1.PavBucketAccess) bool, options ...client.ListOption) ([]pavv1.PavBucketAccess, error) {
	var found []pavv1.PavBucketAccess
	list := &pavv1.PavBucketAccessList{}
	for {
		if err := g.listKnown(ctx, list, hiddenPavAccesses, append(options, client.Limit(page), client.Continue(list.Continue))...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				found = append(found, *list.Items[i].DeepCopy())
			}
		}
		if list.Continue == "" {
			slices.SortFunc(found, func(a, b pavv1.PavBucketAccess) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return found, nil
		}
	}
}

// secretClients reads the pods that use the Secrets of the access. No selector can find them, so it lists all pods in the namespace.
func (g *gatherer) secretClients(ctx context.Context) error {
	namespace, secrets := g.Bucket.secrets()
	if len(secrets) == 0 {
		return nil
	}
	list := &corev1.PodList{}
	for {
		allowed, err := g.list(ctx, list, hiddenClients, client.InNamespace(namespace), client.Limit(page), client.Continue(list.Continue))
		if err != nil || !allowed {
			return err
		}
		for i := range list.Items {
			if readsSecret(&list.Items[i], secrets) != "" {
				g.Clients = append(g.Clients, list.Items[i])
			}
		}
		if list.Continue == "" {
			slices.SortFunc(g.Clients, byAge)
			return nil
		}
	}
}

// targets returns what the workflow pods work for that the gatherer reads: the volume, the snapshot, or the bucket and its accesses.
func (g *gatherer) targets() []Target {
	if g.Snapshot != nil {
		if g.Snapshot.Record == nil {
			return nil
		}
		return []Target{{Volume: g.Snapshot.volumeName(), Snapshot: g.Snapshot.Record}}
	}
	if g.Bucket == nil {
		return []Target{{Volume: g.volumeName()}}
	}
	return targetsOfBucket(g.Bucket.Record, g.Bucket.Accesses)
}

func targetsOfBucket(record *pavv1.PavBucket, accesses []pavv1.PavBucketAccess) []Target {
	var targets []Target
	if record != nil {
		targets = append(targets, Target{Bucket: record})
	}
	for i := range accesses {
		targets = append(targets, Target{Access: &accesses[i]})
	}
	return targets
}

// objects returns the objects of a bucket and of its accesses that events may be about.
func (b *BucketFacts) objects() []object {
	var objects []object
	if b.ObjectClaim != nil {
		objects = append(objects, object{b.ObjectClaim.Namespace, "ObjectBucketClaim", b.ObjectClaim.Name, b.ObjectClaim.UID})
	}
	if b.Claim != nil {
		objects = append(objects, object{b.Claim.Namespace, "BucketClaim", b.Claim.Name, b.Claim.UID})
	}
	if b.Access != nil {
		objects = append(objects, object{b.Access.Namespace, "BucketAccess", b.Access.Name, b.Access.UID})
	}
	if b.Record != nil {
		objects = append(objects, object{corev1.NamespaceDefault, "PavBucket", b.Record.Name, b.Record.UID})
		if claim := protocol.ClaimOfBucket(b.Record); claim != nil && b.ObjectClaim == nil && b.Claim == nil {
			objects = append(objects, object{claim.Namespace, claim.Kind, claim.Name, claim.UID})
		}
	}
	for i := range last(b.Accesses, most) {
		record := &last(b.Accesses, most)[i]
		objects = append(objects, object{corev1.NamespaceDefault, "PavBucketAccess", record.Name, record.UID})
	}
	return objects
}
