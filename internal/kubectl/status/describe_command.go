package status

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// DescribeCommand returns the command.
func DescribeCommand(env *cli.Env) *cobra.Command {
	output := &cli.Output{}
	command := &cobra.Command{
		Use: "describe pvc/NAME | pv/NAME | pod/NAME | vs/NAME | vsc/NAME | pavsnapshot/NAME | obc/NAME | bucketclaim/NAME | bucketaccess/NAME | " +
			"pavbucket/NAME | pavbucketaccess/NAME | pav/NAME",
		Short: "Show the state of a volume, a snapshot or a bucket, what is wrong with it, and what to do",
		Long: `Shows the history of a volume as a timeline, from the claim to the pods that use it: what was done,
by which pods, how long each step took, what failed, what the failing pod said, and what to do next.

A pod's description covers all its volumes that are PaV's, and that of a PavProvisioner (pav) its volumes, snapshots, buckets
and accesses that fail. That of a VolumeSnapshot (vs), VolumeSnapshotContent (vsc) or PavSnapshot is the history of a snapshot.

That of an ObjectBucketClaim (obc), a BucketClaim or a PavBucket is the history of a bucket, with the accounts of all accesses to
it: which are in use and until when, which are being granted, and when former ones are revoked. That of a BucketAccess or a
PavBucketAccess is the history of one access. Secrets are never read.

What you may not read is left out. The exit status is 1 where something is wrong.`,
		Example: "  kubectl pav describe pvc/data -n apps\n  kubectl pav describe pod web\n  kubectl pav describe vs/nightly -n apps\n  kubectl pav describe obc/photos\n  kubectl pav describe pv/pvc-0123 -o json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			ref, err := Parse(env, args, Claim, PV, Pod, Snapshot, Content, PavSnapshot, ObjectBucketClaim, BucketClaim, BucketAccess, PavBucket, PavAccess, Provisioner)
			if err != nil {
				return err
			}
			cluster, err := env.Connect()
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			answer, err := Find(command.Context(), cluster, ref)
			if err != nil {
				return err
			}
			return writeAnswer(env, output, answer)
		},
	}
	output.AddFlag(command.Flags())
	return command
}

func writeAnswer(env *cli.Env, output *cli.Output, answer *Answer) error {
	var err error
	if output.Structured() {
		err = output.Write(env.Out, answer)
	} else {
		err = Render(env.Out, env.Style(), answer, time.Local)
	}
	if err == nil && answer.failing() {
		err = &cli.ExitError{Code: 1}
	}
	return err
}

// Answer is the command's output. Its JSON is the output of -o json.
type Answer struct {
	// Subject is the object that the user named, as in "pod/web -n apps".
	Subject string `json:"subject"`

	// Volumes are the volumes of the subject: one, unless it is a pod.
	Volumes []*Report `json:"volumes"`

	// Others are the claims of a pod whose volumes are not PaV's.
	Others []string `json:"others,omitempty"`
}

func (a *Answer) failing() bool {
	for _, report := range a.Volumes {
		if report.State == Failing {
			return true
		}
	}
	return false
}

// Find gathers and diagnoses everything about the subject.
func Find(ctx context.Context, cluster *cli.Cluster, ref Ref) (*Answer, error) {
	answer := &Answer{Subject: ref.String(), Volumes: []*Report{}}
	if ref.Kind == Provisioner {
		report, err := reportOnProvisioner(ctx, cluster, ref.Name)
		if err != nil {
			return nil, err
		}
		answer.Volumes = append(answer.Volumes, report)
		return answer, nil
	}
	if ref.Kind != Pod {
		report, err := reportOn(ctx, cluster, ref)
		if err != nil {
			return nil, err
		}
		answer.Volumes = append(answer.Volumes, report)
		return answer, nil
	}
	pod := &corev1.Pod{}
	if err := cluster.Objects.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no pod %q in namespace %q", ref.Name, ref.Namespace)
		}
		return nil, fmt.Errorf("getting the pod: %w", err)
	}
	for _, name := range ClaimsOf(pod) {
		claim := Ref{Kind: Claim, Namespace: ref.Namespace, Name: name}
		report, err := reportOn(ctx, cluster, claim)
		switch {
		case err != nil:
			answer.Others = append(answer.Others, fmt.Sprintf("%s: %v", name, err))
		case report.Findings[0].Code == NotPaV:
			answer.Others = append(answer.Others, name+": "+report.Findings[0].Summary)
		default:
			answer.Volumes = append(answer.Volumes, report)
		}
	}
	return answer, nil
}

func reportOn(ctx context.Context, cluster *cli.Cluster, ref Ref) (*Report, error) {
	facts, err := Gather(ctx, cluster.Objects, ref, cluster.Now)
	if err != nil {
		return nil, err
	}
	report := Build(facts)
	for i := range report.Findings {
		if ref := report.Findings[i].Pod; ref != nil {
			report.Log = lastLog(ctx, cluster.Kube, *ref)
			break
		}
	}
	return report, nil
}
