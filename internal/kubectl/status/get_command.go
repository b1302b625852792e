package status

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// GetCommand returns the command.
func GetCommand(env *cli.Env) *cobra.Command {
	o := &listing{env: env}
	command := &cobra.Command{
		Use:   "get [PROVISIONER]",
		Short: "List volumes and where they are available",
		Long: `Lists the volumes of a PavProvisioner, or of all of them, and the nodes that have them: those of claims in
all namespaces, which is the default, or in the one of -n. "get snapshots", "get buckets" and "get accesses" list snapshots, buckets
and accesses to buckets; the volumes of a PavProvisioner with such a name are listed by "get -- buckets".`,
		Example: "  kubectl pav get\n  kubectl pav get hello-world -n apps\n  kubectl pav get -o json\n  kubectl pav get snapshots\n  kubectl pav get buckets",
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command, args, func(ctx context.Context, cluster *cli.Cluster, provisioner, namespace string) error {
				volumes, err := readVolumes(ctx, cluster.Objects, provisioner)
				if err != nil {
					return err
				}
				if namespace != "" {
					volumes = inNamespace(volumes, namespace)
				}
				if o.output.Structured() {
					return o.output.Write(env.Out, volumes)
				}
				return renderTable(env, volumes, provisioner, o.wide, cluster.Now())
			})
		},
	}
	o.complete(command)
	command.AddCommand(getSnapshots(env), getBuckets(env), getAccesses(env))
	return command
}

func getSnapshots(env *cli.Env) *cobra.Command {
	o := &listing{env: env}
	command := &cobra.Command{
		Use:   "snapshots [PROVISIONER]",
		Short: "List snapshots",
		Long: `Lists the snapshots of a PavProvisioner, or of all of them: those of VolumeSnapshots in all namespaces, which is
the default, or in the one of -n.`,
		Example: "  kubectl pav get snapshots\n  kubectl pav get snapshots loop-device -n apps",
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command, args, func(ctx context.Context, cluster *cli.Cluster, provisioner, namespace string) error {
				rows, err := readSnapshots(ctx, cluster.Objects, provisioner)
				if err != nil {
					return err
				}
				if namespace != "" {
					rows = slices.DeleteFunc(rows, func(r SnapshotRow) bool { return r.Namespace != namespace })
				}
				if o.output.Structured() {
					return o.output.Write(env.Out, rows)
				}
				return renderSnapshots(env, rows, o.wide, cluster.Now())
			})
		},
	}
	o.complete(command)
	return command
}

func getBuckets(env *cli.Env) *cobra.Command {
	o := &listing{env: env}
	command := &cobra.Command{
		Use:   "buckets [PROVISIONER]",
		Short: "List buckets",
		Long: `Lists the buckets of a PavProvisioner, or of all of them: those of claims in all namespaces, which is the default, or in
the one of -n.`,
		Example: "  kubectl pav get buckets\n  kubectl pav get buckets store -n apps",
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command, args, func(ctx context.Context, cluster *cli.Cluster, provisioner, namespace string) error {
				rows, err := readBuckets(ctx, cluster.Objects, provisioner)
				if err != nil {
					return err
				}
				if namespace != "" {
					rows = slices.DeleteFunc(rows, func(r BucketRow) bool { return r.Namespace != namespace })
				}
				if o.output.Structured() {
					return o.output.Write(env.Out, rows)
				}
				return renderBuckets(env, rows, o.wide, cluster.Now())
			})
		},
	}
	o.complete(command)
	return command
}

func getAccesses(env *cli.Env) *cobra.Command {
	o := &listing{env: env}
	command := &cobra.Command{
		Use:   "accesses [PROVISIONER]",
		Short: "List accesses to buckets",
		Long: `Lists the accesses to buckets of a PavProvisioner, or of all of them: those of ObjectBucketClaims and BucketAccesses in all
namespaces, which is the default, or in the one of -n. EXPIRES and ROTATION say when the credentials end, and when another account follows.`,
		Example: "  kubectl pav get accesses\n  kubectl pav get accesses store -n apps",
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command, args, func(ctx context.Context, cluster *cli.Cluster, provisioner, namespace string) error {
				rows, err := readAccesses(ctx, cluster.Objects, provisioner)
				if err != nil {
					return err
				}
				if namespace != "" {
					rows = slices.DeleteFunc(rows, func(r AccessRow) bool { return r.Namespace != namespace })
				}
				if o.output.Structured() {
					return o.output.Write(env.Out, rows)
				}
				return renderAccesses(env, rows, o.wide, cluster.Now())
			})
		},
	}
	o.complete(command)
	return command
}

// listing is a command that lists what belongs to a PavProvisioner.
type listing struct {
	env              *cli.Env
	output           cli.Output
	wide, everywhere bool
}

// complete adds what such commands have in common.
func (o *listing) complete(command *cobra.Command) {
	command.Args = cobra.MaximumNArgs(1)
	o.output.AddFlag(command.Flags())
	command.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "in all namespaces, also if there is a -n")
	command.Flags().BoolVarP(&o.wide, "wide", "w", false, "also show the last failure")
	command.ValidArgsFunction = func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return completeGet(command.Context(), o.env, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// run lists with the provisioner and the namespace that the user named, each "" for all.
func (o *listing) run(command *cobra.Command, args []string, list func(ctx context.Context, cluster *cli.Cluster, provisioner, namespace string) error) error {
	cluster, err := o.env.Connect()
	if err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	provisioner, namespace := "", ""
	if len(args) == 1 {
		provisioner = args[0]
		if err := cluster.Objects.Get(command.Context(), client.ObjectKey{Name: provisioner}, &pavv1.PavProvisioner{}); apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no PavProvisioner %q", provisioner)
		}
	}
	if flag := command.Flag("namespace"); flag != nil && flag.Changed && !o.everywhere {
		namespace = flag.Value.String()
	}
	return list(command.Context(), cluster, provisioner, namespace)
}

// completeGet returns the names of the provisioners.
func completeGet(ctx context.Context, env *cli.Env, args []string) []string {
	cluster, err := env.Connect()
	if err != nil || len(args) > 0 {
		return nil
	}
	list := &pavv1.PavProvisionerList{}
	if err := cluster.Objects.List(ctx, list); err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// readVolumes returns the volumes of a provisioner, or of all if it is "".
func readVolumes(ctx context.Context, reader client.Reader, provisioner string) ([]VolumeRow, error) {
	var options []client.ListOption
	if provisioner != "" {
		options = append(options, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner})
	}
	volumes := &pavv1.PavVolumeList{}
	if err := reader.List(ctx, volumes, options...); err != nil {
		return nil, fmt.Errorf("listing PavVolumes: %w", err)
	}
	stages := &pavv1.PavStageList{}
	if err := reader.List(ctx, stages, options...); err != nil {
		return nil, fmt.Errorf("listing PavStages: %w", err)
	}
	pvs, err := readPVs(ctx, reader)
	if err != nil {
		return nil, err
	}
	return JoinVolumes(volumes.Items, stages.Items, pvs), nil
}

// readPVs returns all PersistentVolumes, or none if the user may not list them. Then the claims shown are those for
// which the volumes were created.
func readPVs(ctx context.Context, reader client.Reader) ([]corev1.PersistentVolume, error) {
	list := &corev1.PersistentVolumeList{}
	if err := reader.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	return list.Items, nil
}
