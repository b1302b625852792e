package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// RotateCommand returns the command that requests another account.
func RotateCommand(env *cli.Env) *cobra.Command {
	output := &cli.Output{}
	command := &cobra.Command{
		Use:   "rotate obc/NAME | bucketaccess/NAME | pavbucketaccess/NAME",
		Short: "Replace the account of an access to a bucket",
		Long: `Requests another account for an access to a bucket: PaV grants it, writes its credentials to the same Secret, and revokes the
former account after bucketAccessGrant.overlap, by default 1h. A Secret that was deleted is written again in this way.

There is at most one rotation in 10 minutes for each access, and one request at a time. Pods that read the Secret as a volume get
the new credentials; those that have them in their environment need a restart before the former account is revoked. "kubectl pav
describe" names them.`,
		Example: "  kubectl pav rotate obc/photos -n apps\n  kubectl pav rotate bucketaccess web",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			ref, err := status.Parse(env, args, status.ObjectBucketClaim, status.BucketAccess, status.PavAccess)
			if err != nil {
				return err
			}
			cluster, err := env.Connect()
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			result, err := Rotate(command.Context(), cluster.Objects, ref, cluster.Now)
			if err != nil {
				return err
			}
			return write(env, output, []Result{result}, words{"another account is requested", "no other account is requested"})
		},
	}
	output.AddFlag(command.Flags())
	return command
}

// Rotate requests another account for an access.
func Rotate(ctx context.Context, objects client.Client, ref status.Ref, now func() time.Time) (Result, error) {
	result := Result{Kind: string(ref.Kind), Name: ref.Name}
	r, err := readRotation(ctx, objects, ref)
	if err != nil {
		return result, err
	}
	r.now = now()
	at, what := r.plan()
	if result.What = what; at.IsZero() {
		return result, nil
	}
	if err := annotate(ctx, objects, r.requester, pavv1.RotateAnnotation, at); err != nil {
		return result, fmt.Errorf("annotating %s: %w", ref, err)
	}
	result.Asked = true
	return result, nil
}

// rotation is what a request for another account depends on.
type rotation struct {
	now time.Time

	// requester is the object that gets the annotation: the one that the user named.
	requester client.Object

	// record is the PavBucketAccess; nil if it does not exist or, if hidden is true, the user may not read it.
	record *pavv1.PavBucketAccess
	hidden bool

	// provisioner is nil if it does not exist, or the user may not read it.
	provisioner *pavv1.PavProvisioner
}

// readRotation reads what a request depends on.
func readRotation(ctx context.Context, objects client.Client, ref status.Ref) (rotation, error) {
	r, record := rotation{}, &pavv1.PavBucketAccess{}
	switch ref.Kind {
	case status.ObjectBucketClaim:
		r.requester = &objectbucketv1.ObjectBucketClaim{}
	case status.BucketAccess:
		r.requester = &cosiv1.BucketAccess{}
	default:
		r.requester = record
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	err := objects.Get(ctx, key, r.requester)
	if ref.Kind == status.BucketAccess && meta.IsNoMatchError(err) { // a cluster has one of the two versions
		r.requester = &cosiv2.BucketAccess{}
		err = objects.Get(ctx, key, r.requester)
	}
	if err != nil {
		return r, fmt.Errorf("getting %s: %w", ref, err)
	}
	if r.requester != record {
		name := protocol.AccessRecord(r.requester.GetUID())
		err = objects.Get(ctx, client.ObjectKey{Name: name}, record)
		if r.hidden = apierrors.IsForbidden(err); r.hidden || apierrors.IsNotFound(err) {
			return r, nil
		}
		if err != nil {
			return r, fmt.Errorf("getting PavBucketAccess %q: %w", name, err)
		}
	}
	r.record = record
	provisioner := &pavv1.PavProvisioner{}
	err = objects.Get(ctx, client.ObjectKey{Name: record.Spec.Provisioner}, provisioner)
	switch {
	case err == nil:
		r.provisioner = provisioner
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return r, fmt.Errorf("getting PavProvisioner %q: %w", record.Spec.Provisioner, err)
	}
	return r, nil
}

// plan returns the time of the request, and what follows; the zero time, and why, if there is nothing to request. It is pure.
func (r rotation) plan() (at time.Time, what string) {
	if r.hidden {
		return r.now, "it follows now, or 10m after the last one, once access is granted"
	}
	if r.record == nil {
		return time.Time{}, "PaV has no record of the access"
	}
	status := &r.record.Status
	switch {
	case r.record.Spec.Released || r.record.DeletionTimestamp != nil:
		return time.Time{}, "the access is being revoked"
	case status.Current == nil:
		return time.Time{}, "no access is granted yet; see kubectl pav describe"
	case r.provisioner != nil && r.provisioner.Spec.BucketAccessGrant == nil:
		return time.Time{}, fmt.Sprintf("PavProvisioner %q has no bucketAccessGrant", r.provisioner.Name)
	case status.Granting != nil:
		return time.Time{}, "another account is being granted already"
	}
	for _, object := range []metav1.Object{r.requester, r.record} {
		if requested, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[pavv1.RotateAnnotation]); err == nil && requested.After(status.Current.Began()) {
			return time.Time{}, "one is requested already, and " + r.follows(requested)
		}
	}
	// If this clock is behind the agent's, the request must still be later than the attempt that made the present account.
	at = r.now
	if least := status.Current.Began().Add(time.Second); at.Before(least) {
		at = least
	}
	return at, r.follows(at)
}

// follows says when a request is handled, and what becomes of the present account.
func (r rotation) follows(requested time.Time) string {
	with := r.record.DeepCopy()
	metav1.SetMetaDataAnnotation(&with.ObjectMeta, pavv1.RotateAnnotation, requested.UTC().Format(pavv1.RetryFormat))
	grant := &pavv1.BucketAccessGrant{} // as good as any, if the definition is not known
	if r.provisioner != nil {
		grant = r.provisioner.Spec.BucketAccessGrant
	}
	text, failure := "it follows now", r.record.Status.Failure
	switch due := podplan.NextRotation(with, grant); {
	case failure != nil && failure.NextAttemptTime != nil && failure.NextAttemptTime.After(r.now):
		text = fmt.Sprintf("it follows in %s, as the last attempt failed", cli.Duration(failure.NextAttemptTime.Sub(r.now)))
	case due.After(r.now):
		text = fmt.Sprintf("it follows in %s, as there is at most one in %s", cli.Duration(due.Sub(r.now)), cli.Duration(podplan.RotationPause))
	}
	if r.provisioner == nil {
		return text
	}
	return fmt.Sprintf("%s; the present account works for another %s after that", text, cli.Duration(podplan.Overlap(grant)))
}
