package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/template"
)

const long = `Test a provisioner on a cluster: make volumes, write, read, move them to another node, delete them; and make buckets,
grant access to them, replace accounts, revoke them, and delete the buckets.

What is tested is a copy of the PavProvisioner under a name of its own, so that one of the same name that is
installed is not disturbed. A StorageClass of the provisioner in the files, and a claim of that class, are the
patterns for those of the test. Other objects in the files, such as Secrets, are created only with
--with-objects: in the namespace of the test, where they name none. All of it is removed at the end, also after
a failure and after an interruption; objects that cannot be removed are listed, with commands that help.

For each volume mode that the definition supports there is a volume. Where the definition can, the volume is
cloned, and a snapshot of it is made and restored, if the cluster has snapshots. Data that is not there on another node is
a warning, as some volumes are not meant to keep it, unless --require-persistence is given. The first failed
attempt of a workflow ends its step, although PaV would try again.

For buckets there is an ObjectBucketClaim, and a BucketClaim with a BucketAccess, where the cluster has these kinds and the
definition has bucketCreation or bucketAccessGrant. The test looks whether there is a Secret, and does not read it. Accounts are
revoked twice, and buckets deleted twice: both must succeed where nothing is left.`

const example = `  # On the current cluster
  kubectl pav test provisioner.yaml

  # With the StorageClass, the claim and the Secret of another file
  kubectl pav test provisioner.yaml usage.yaml --with-objects

  # A volume that exists, by its handle
  kubectl pav test provisioner.yaml --handle bucket-1 --param region=eu`

// Command returns the command "kubectl pav test".
func Command(env *cli.Env) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:     "test FILE...",
		Short:   "Test a provisioner on a cluster",
		Long:    long,
		Example: example,
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(command *cobra.Command, files []string) error {
			return start(command, env, o, files)
		},
	}
	o.addFlags(command.Flags())
	for flag, values := range map[string][]string{"volume-mode": VolumeModes(), "access-mode": AccessModes(), "output": cli.Formats()} {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return command
}

// start runs the test with the files.
func start(command *cobra.Command, env *cli.Env, o *options, files []string) error {
	in, err := read(files, env.In, o.Provisioner)
	if err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	if err := o.complete(in.provisioner(), command.Flags().Changed("size")); err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	if err := testable(in, o); err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	cluster, err := env.Connect()
	if err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	r := &run{
		describe:  describer(cluster, env, advice(o, files)),
		options:   o,
		input:     in,
		name:      o.Name,
		client:    cluster.Objects,
		templates: template.NewEvaluator(template.DefaultLimits()),
		troubles:  &troubles{client: cluster.Objects, provisioner: o.Name, reported: map[string]bool{}},
		progress:  &progress{out: env.Out, style: env.Style(), live: env.Terminal()},
		report:    &Report{Provisioner: in.provisioner(), Name: o.Name},
	}
	if o.Output.Structured() {
		r.progress = &progress{out: io.Discard}
	}
	r.progress.heading(in.provisioner() + ", tested as " + o.Name)
	r.test(command.Context())
	r.progress.report(r.report)
	if o.Output.Structured() {
		if err := o.Output.Write(env.Out, r.report); err != nil {
			return err
		}
	}
	if !r.report.Passed {
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// describer returns a function that writes the output of "kubectl pav describe" about a claim.
func describer(cluster *cli.Cluster, env *cli.Env, next []status.Step) func(ctx context.Context, ref status.Ref) (string, error) {
	return func(ctx context.Context, ref status.Ref) (string, error) {
		answer, err := status.Find(ctx, cluster, ref)
		if err != nil {
			return "", err
		}
		if next != nil {
			replaceNext(answer, next)
		}
		var text strings.Builder
		err = status.Render(&text, env.Style(), answer, time.Local)
		return text.String(), err
	}
}

// replaceNext replaces the steps to take after each finding.
func replaceNext(answer *status.Answer, next []status.Step) {
	for _, report := range answer.Volumes {
		for i := range report.Findings {
			report.Findings[i].Next = next
		}
	}
}

// advice returns the steps to take after a failure. Those of the description are about objects that the test removes; nil if it
// keeps them.
func advice(o *options, files []string) []status.Step {
	if o.Keep {
		return nil
	}
	return []status.Step{{Text: fmt.Sprintf("fix %s, and run the test again; with --keep, it does not remove its objects", strings.Join(files, ", "))}}
}

var errNothingToTest = errors.New("the definition supports static provisioning only: give the handle of a volume with --handle")

// testable explains why nothing could be tested.
func testable(in *input, o *options) error {
	definition, err := in.definition()
	if err != nil {
		return nil //nolint:nilerr // Lint tells it better.
	}
	dynamic := slices.Contains(definition.Spec.ProvisioningModes, pavv1.ProvisioningModeDynamic)
	static := slices.Contains(definition.Spec.ProvisioningModes, pavv1.ProvisioningModeStatic)
	if static && !dynamic && o.Handle == "" && in.hasVolumes() {
		return errNothingToTest
	}
	if o.Handle != "" && !static {
		return errors.New("--handle: the definition does not support static provisioning")
	}
	return nil
}
