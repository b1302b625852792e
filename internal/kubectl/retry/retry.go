package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/workflow"
)

// Result is the outcome for one object.
type Result struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Asked bool   `json:"asked"`

	// What describes the retry, or the reason why there is none.
	What string `json:"what"`
}

// Command returns the command.
func Command(env *cli.Env) *cobra.Command {
	output := &cli.Output{}
	command := &cobra.Command{
		Use: "retry pvc/NAME | pv/NAME | vs/NAME | vsc/NAME | obc/NAME | bucketclaim/NAME | bucketaccess/NAME | pavvolume/NAME | pavstage/NAME | " +
			"pavsnapshot/NAME | pavbucket/NAME | pavbucketaccess/NAME",
		Short: "Start the next attempt now",
		Long: `After a failure, PaV waits longer and longer, up to five minutes, before the next attempt. This command
starts the next attempt now: to create or delete a volume, a snapshot or a bucket, to unstage a volume, to stage it again on its
nodes, to grant access to a bucket, or to revoke an account. For an ObjectBucketClaim (obc), that is its bucket and its access.
A pod that cannot start, or that has run for more than 30 s, is stopped once an event says so: its attempt fails, and
is reverted where necessary. Other pods continue.

Kubelet's own pauses between attempts to stage a volume for a pod cannot be skipped: delete the pod.`,
		Example: "  kubectl pav retry pvc/data -n apps\n  kubectl pav retry pavstage/stage-0123456789",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			ref, err := status.Parse(env, args, status.Claim, status.PV, status.Snapshot, status.Content, status.Volume, status.Stage, status.PavSnapshot,
				status.ObjectBucketClaim, status.BucketClaim, status.BucketAccess, status.PavBucket, status.PavAccess)
			if err != nil {
				return err
			}
			cluster, err := env.Connect()
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			results, err := Run(command.Context(), cluster.Objects, ref, cluster.Now)
			if err != nil {
				return err
			}
			return write(env, output, results, words{"the next attempt starts now", "nothing to retry"})
		},
	}
	output.AddFlag(command.Flags())
	return command
}

// words say what was done, and what was not.
type words struct{ asked, not string }

func write(env *cli.Env, output *cli.Output, results []Result, say words) error {
	asked := false
	style := env.Style()
	for _, r := range results {
		asked = asked || r.Asked
		if output.Structured() {
			continue
		}
		object, what := cli.Plain(r.Kind+"/"+r.Name), cli.Plain(r.What)
		text := style.Dim(object + ": " + say.not + ": " + what)
		if r.Asked {
			text = style.Bold(object) + ": " + say.asked + ": " + what
		}
		if _, err := fmt.Fprintln(env.Out, text); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	if output.Structured() {
		if err := output.Write(env.Out, results); err != nil {
			return err
		}
	}
	if !asked {
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// Run requests the next attempt of everything that has failed for the object.
func Run(ctx context.Context, objects client.Client, ref status.Ref, now func() time.Time) ([]Result, error) {
	found, err := find(ctx, objects, ref)
	if err != nil {
		return nil, err
	}
	results := make([]Result, 0, len(found))
	for _, object := range found {
		result, err := ask(ctx, objects, object, now())
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// find returns the PavVolume and the PavStages that belong to an object, the PavSnapshot, or the PavBucket and the PavBucketAccess.
func find(ctx context.Context, objects client.Client, ref status.Ref) ([]client.Object, error) {
	switch ref.Kind {
	case status.Volume, status.Stage:
		var object client.Object = &pavv1.PavVolume{}
		if ref.Kind == status.Stage {
			object = &pavv1.PavStage{}
		}
		if err := objects.Get(ctx, client.ObjectKey{Name: ref.Name}, object); err != nil {
			return nil, fmt.Errorf("getting %s: %w", ref, err)
		}
		return []client.Object{object}, nil
	case status.Snapshot, status.Content, status.PavSnapshot:
		record, err := status.SnapshotOf(ctx, objects, ref)
		if err != nil {
			return nil, err
		}
		return []client.Object{record}, nil
	case status.ObjectBucketClaim, status.BucketClaim, status.BucketAccess, status.PavBucket, status.PavAccess:
		return ofBucket(ctx, objects, ref)
	default:
	}
	name := ref.Name
	if ref.Kind == status.Claim {
		var err error
		if name, err = volumeOf(ctx, objects, ref); err != nil {
			return nil, err
		}
	}
	return ofVolume(ctx, objects, ref, name)
}

// volumeOf returns the name of a claim's volume, even if the claim is gone and the volume is being deleted.
func volumeOf(ctx context.Context, objects client.Client, ref status.Ref) (string, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := objects.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	switch {
	case err == nil:
		return status.VolumeName(claim), nil
	case !apierrors.IsNotFound(err):
		return "", fmt.Errorf("getting %s: %w", ref, err)
	}
	volume, left := status.FormerVolume(ctx, objects, ref)
	if left != nil {
		return "", fmt.Errorf("getting %s: %w", ref, left)
	}
	if volume == nil {
		return "", fmt.Errorf("getting %s: %w", ref, err)
	}
	return volume.Name, nil
}

// ofBucket returns PaV's records of a bucket, and of the access that belongs to the object.
func ofBucket(ctx context.Context, objects client.Client, ref status.Ref) ([]client.Object, error) {
	record, access, err := status.BucketRecords(ctx, objects, ref)
	if err != nil {
		return nil, err
	}
	var found []client.Object
	if record != nil {
		found = append(found, record)
	}
	if access != nil {
		found = append(found, access)
	}
	return found, nil
}

// ofVolume returns PaV's records of a volume. A static volume may have stages only.
func ofVolume(ctx context.Context, objects client.Client, ref status.Ref, name string) ([]client.Object, error) {
	var found []client.Object
	volume := &pavv1.PavVolume{}
	switch err := objects.Get(ctx, client.ObjectKey{Name: name}, volume); {
	case err == nil:
		found = append(found, volume)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("getting PavVolume %q: %w", name, err)
	}
	stages := &pavv1.PavStageList{}
	if err := objects.List(ctx, stages, client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(name)}); err != nil {
		return nil, fmt.Errorf("listing PavStages: %w", err)
	}
	for i := range stages.Items {
		if stages.Items[i].Spec.VolumeName == name {
			found = append(found, &stages.Items[i])
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: PaV has no record of it; see kubectl pav describe %s", ref, ref)
	}
	return found, nil
}

// ask annotates an object if something has failed for it.
func ask(ctx context.Context, objects client.Client, object client.Object, now time.Time) (Result, error) {
	result := Result{Name: object.GetName()}
	var failure *pavv1.WorkflowFailure
	switch object := object.(type) {
	case *pavv1.PavVolume:
		result.Kind = string(status.Volume)
		failure, result.What = ofPavVolume(object)
	case *pavv1.PavStage:
		result.Kind = string(status.Stage)
		failure, result.What = ofPavStage(object)
	case *pavv1.PavSnapshot:
		result.Kind = string(status.PavSnapshot)
		failure, result.What = ofPavSnapshot(object)
	case *pavv1.PavBucket:
		result.Kind = string(status.PavBucket)
		failure, result.What = ofPavBucket(object)
	case *pavv1.PavBucketAccess:
		result.Kind = string(status.PavAccess)
		failure, result.What = ofPavBucketAccess(object)
	}
	if failure == nil {
		return result, nil
	}
	// If this clock is behind the agent's, the request must still not be older than the failure, whose time has whole
	// seconds.
	at := now
	if least := failure.Time.Add(time.Second - time.Microsecond); at.Before(least) {
		at = least
	}
	if err := annotate(ctx, objects, object, pavv1.RetryAnnotation, at); err != nil {
		return result, fmt.Errorf("annotating %s/%s: %w", result.Kind, result.Name, err)
	}
	result.Asked = true
	return result, nil
}

// annotate writes the time of a request. It differs from that of the previous request, which may be from the same second: a value counts
// only once.
func annotate(ctx context.Context, objects client.Client, object client.Object, key string, at time.Time) error {
	if former, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[key]); err == nil && !at.After(former) {
		at = former.Add(time.Microsecond)
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying %T", object)
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = at.UTC().Format(pavv1.RetryFormat)
	object.SetAnnotations(annotations)
	return objects.Patch(ctx, object, client.MergeFrom(before))
}
