package logs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

// phases are the values of --phase, in the order of the life of a volume and of a bucket, and the workflows of their pods.
var phases = []struct{ name, workflow string }{
	{"validation", pavv1.WorkflowValidation},
	{"creation", pavv1.WorkflowCreation},
	{"staging", pavv1.WorkflowStaging},
	{"expansion", pavv1.WorkflowExpansion},
	{"modification", pavv1.WorkflowModification},
	{"snapshot-creation", pavv1.WorkflowSnapshotCreation},
	{"snapshot-deletion", pavv1.WorkflowSnapshotDeletion},
	{"node-expansion", pavv1.WorkflowNodeExpansion},
	{"unstaging", pavv1.WorkflowUnstaging},
	{"deletion", pavv1.WorkflowDeletion},
	{"bucket-validation", pavv1.WorkflowBucketValidation},
	{"bucket-creation", pavv1.WorkflowBucketCreation},
	{"bucket-update", pavv1.WorkflowBucketUpdate},
	{"access-grant", pavv1.WorkflowGrant},
	{"access-revocation", pavv1.WorkflowRevocation},
	{"bucket-deletion", pavv1.WorkflowBucketDeletion},
}

// options are the flags.
type options struct {
	phase      string
	follow     bool
	tail       int64
	timestamps bool
}

// Command returns the command.
func Command(env *cli.Env) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use: "logs pvc/NAME | pv/NAME | pod/NAME | vs/NAME | vsc/NAME | pavsnapshot/NAME | obc/NAME | bucketclaim/NAME | bucketaccess/NAME | " +
			"pavbucket/NAME | pavbucketaccess/NAME",
		Short: "Show the logs of the pods that work for a volume, a snapshot or a bucket",
		Long: `Shows the logs of all pods that PaV has run for a volume, a snapshot, a bucket or an access to one and that are still there,
oldest first: those that run, those that a volume in use needs, and the last one of each kind that failed. Where there are several,
lines begin with the phase and the pod.

Those of an ObjectBucketClaim (obc) are the pods of its bucket and of its access, those of a BucketClaim the pods of its bucket alone.
A log of the phase access-grant has credentials if the script prints them.

With -f it goes on with pods that run, and with all that come, until it is interrupted or the object is gone.`,
		Example: "  kubectl pav logs pvc/data\n  kubectl pav logs pvc/data --phase creation -f\n  kubectl pav logs vs/nightly\n  kubectl pav logs obc/photos --phase bucket-creation",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			ref, err := status.Parse(env, args, status.Claim, status.PV, status.Pod, status.Snapshot, status.Content, status.PavSnapshot,
				status.ObjectBucketClaim, status.BucketClaim, status.BucketAccess, status.PavBucket, status.PavAccess)
			if err != nil {
				return err
			}
			cluster, err := env.Connect()
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			return run(command.Context(), env, cluster, ref, o)
		},
	}
	command.Flags().StringVar(&o.phase, "phase", "", "only pods of this phase: "+strings.Join(phaseNames(), ", "))
	command.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow the logs, including those of new pods, until interrupted")
	command.Flags().Int64Var(&o.tail, "tail", -1, "number of last lines to show of each container; all if negative")
	command.Flags().BoolVar(&o.timestamps, "timestamps", false, "begin each line with its time")
	_ = command.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phaseNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func phaseNames() []string {
	var names []string
	for _, phase := range phases {
		names = append(names, phase.name)
	}
	return names
}

func (o *options) validate() error {
	o.phase = cli.Phase(o.phase)
	if o.phase != "" && !slices.Contains(phaseNames(), o.phase) {
		return fmt.Errorf("--phase %q: it is one of %s", o.phase, strings.Join(phaseNames(), ", "))
	}
	return nil
}
