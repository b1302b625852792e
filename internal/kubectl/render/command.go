package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/lint"
	"github.com/albertofaria/pav/internal/kubectl/source"
	"github.com/albertofaria/pav/internal/template"
)

// options are the command's flags.
type options struct {
	pvc, sc, pv, node   string
	provisioner, handle string
	source              string
	phases              []string
	readOnly            bool
	diff                string
	volumes             bool
	limits              template.Limits
	output              cli.Output
}

// installed is the value of --diff if it is given without a value.
const installed = "cluster"

// Command returns the command "render".
func Command(env *cli.Env) *cobra.Command {
	o := &options{limits: template.DefaultLimits()}
	command := &cobra.Command{
		Use:   "render FILE...",
		Short: "Show the pods that a PavProvisioner creates for a claim, without a cluster",
		Long: `Show the pods that a PavProvisioner creates for a claim, without a cluster: each as the agents would
create it, with its name, labels and /pav. Beside the PavProvisioner, the files may have a StorageClass,
PersistentVolumeClaims, VolumeAttributesClasses, VolumeSnapshots with their contents and classes, PersistentVolumes,
an ObjectBucketClaim, Namespaces and a Node; what none has is made up, and standard error says so:

  StorageClass           of the PavProvisioner, with no parameters; it waits for the first consumer where
                         templates read selectedNode
  PersistentVolumeClaim  of the StorageClass, in the namespace "default", for 1Gi and ReadWriteOnce, or
                         what the PavProvisioner supports
  PersistentVolume       what creation yields; or, where the PavProvisioner has only static volumes, one
                         that fits the claim. One that is given is a static volume, unless it has the
                         annotation pv.kubernetes.io/provisioned-by
  VolumeAttributesClass  not made up: without one, no modification is shown. One that the claim names is what the
                         volume is created with
  source of the claim    the VolumeSnapshot that it names, ready to use, or the claim that it names, with a volume.
                         With --source, it names one, to see how a volume is restored or cloned
  VolumeSnapshot         of the claim, and a VolumeSnapshotClass with no parameters, where the PavProvisioner
                         makes snapshots
  Node                   "node-1"
  ObjectBucketClaim      of the StorageClass, and its Namespace, where the PavProvisioner serves buckets

What an API server fills in, such as UIDs, is made up, too, and the same each time. As names of pods are
hashes of UIDs, pods in a cluster have others. get_pvc finds the claims of the files.

The exit status is 0 where all phases could be rendered, 1 where not, and 2 for wrong use. With --diff it is
0 where nothing differs, 1 where something does, and 2 where something could not be rendered.

With --diff --volumes, the command shows what an edit changes for each volume that the provisioner has in the
cluster. Both definitions are rendered with the volume's own objects, and each difference is shown once, with the
volumes that it concerns and with when it takes effect. What fails for one volume is shown for that volume. You
need the rights to get pavprovisioners, persistentvolumes and persistentvolumeclaims, and to list pavvolumes and
persistentvolumes. Without those to list pavstages, and to get and list nodes, nodes are made up.`,
		Example: `  kubectl pav render provisioner.yaml usage.yaml
  kubectl pav render provisioner.yaml --pvc claim.yaml --sc class.yaml --phase staging
  kubectl pav render provisioner.yaml --source VolumeSnapshot --phase creation
  kubectl pav render provisioner.yaml usage.yaml --diff
  kubectl pav render provisioner.yaml --diff --volumes
  kubectl pav render new.yaml --diff=old.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			if err := o.validate(); err != nil {
				return misuse(err)
			}
			return o.run(command.Context(), env, files)
		},
	}
	o.addFlags(command)
	return command
}

func (o *options) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.pvc, "pvc", "", "file with the PersistentVolumeClaim")
	flags.StringVar(&o.sc, "sc", "", "file with the StorageClass")
	flags.StringVar(&o.pv, "pv", "", "file with the PersistentVolume")
	flags.StringVar(&o.node, "node", "", "file with the Node, or the name of one")
	flags.StringVar(&o.provisioner, "provisioner", "", "name of the PavProvisioner, if the files have several")
	flags.StringVar(&o.handle, "handle", "", "handle of the volume")
	flags.StringVar(&o.source, "source", "", "create the volume from a generated source of this `KIND`, of "+strings.Join(sourceKinds, ", "))
	flags.StringSliceVar(&o.phases, "phase", nil, "what to show, of "+strings.Join(phases, ", ")+" (default: all)")
	flags.BoolVar(&o.readOnly, "read-only", false, "stage the volume read-only")
	flags.StringVar(&o.diff, "diff", "", "compare with the PavProvisioner of another `FILE`, or without one, as in --diff, "+
		"with that of the cluster; KUBECTL_EXTERNAL_DIFF names another program to show the differences")
	flags.Lookup("diff").NoOptDefVal = installed
	flags.BoolVar(&o.volumes, "volumes", false, "with --diff, compare what is planned for each volume in the cluster")
	o.limits.AddFlags(flags)
	o.output.AddFlag(flags)
	for _, name := range []string{"pvc", "sc", "pv", "node", "diff"} {
		_ = command.MarkFlagFilename(name, "yaml", "yml", "json")
	}
	_ = command.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(sourceKinds, cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phases, cobra.ShellCompDirectiveNoFileComp))
}

func (o *options) validate() error {
	for i, phase := range o.phases {
		o.phases[i] = cli.Phase(phase)
		if !slices.Contains(phases, o.phases[i]) {
			return fmt.Errorf("--phase %s: it is one of %s", phase, strings.Join(phases, ", "))
		}
	}
	if err := o.validateSource(); err != nil {
		return err
	}
	if o.diff != "" && o.output.Structured() {
		return errors.New("--diff and -o cannot be used together")
	}
	if o.volumes {
		if err := o.conflict(); err != nil {
			return err
		}
	}
	return o.limits.Validate()
}

func (o *options) run(ctx context.Context, env *cli.Env, files []string) error {
	node := o.node
	if !isFile(node) {
		node = ""
	}
	flags := map[string]string{"PersistentVolumeClaim": o.pvc, "StorageClass": o.sc, "PersistentVolume": o.pv, "Node": node}
	g, err := read(env.In, files, flags)
	if err != nil {
		return o.refuse(env, err, 2)
	}
	chosen, err := g.provisioner(o.provisioner)
	if err != nil {
		return misuse(err)
	}
	if o.volumes {
		return o.showVolumes(ctx, env, chosen)
	}
	after, err := o.of(ctx, g, chosen)
	if err != nil && o.diff != "" {
		return o.refuse(env, err, 2)
	}
	if err != nil {
		return o.refuse(env, err, 1)
	}
	for _, note := range after.notes {
		if _, err := fmt.Fprintln(env.ErrOut, env.Style().Dim(cli.Plain(note))); err != nil {
			return err
		}
	}
	if o.diff != "" {
		return o.showDiff(ctx, env, g, chosen, after)
	}
	if err := o.show(env, after); err != nil {
		return err
	}
	return complaint(env, after, chosen.Document, 1)
}

// of renders a definition with the given objects.
func (o *options) of(ctx context.Context, g *given, chosen object) (*rendering, error) {
	p, err := o.definition(chosen)
	if err != nil {
		return nil, err
	}
	c, err := o.choose(g, p)
	if err != nil {
		return nil, misuse(err)
	}
	return o.render(ctx, p, c), nil
}

// definition returns a definition without mistakes.
func (o *options) definition(chosen object) (*pavv1.PavProvisioner, error) {
	wrong := &findingsError{}
	for _, f := range lint.Check(definition.NewChecker(o.limits), chosen.Document) {
		if f.Severity == definition.Error {
			wrong.findings = append(wrong.findings, f)
		}
	}
	if len(wrong.findings) > 0 {
		return nil, wrong
	}
	p, err := definitionOf(chosen.Object)
	if err != nil {
		return nil, misuse(err)
	}
	return p, nil
}

// refuse reports mistakes in files, and returns the error that sets the exit status. Other errors are returned
// unchanged.
func (o *options) refuse(env *cli.Env, err error, code int) error {
	if exit, ok := errors.AsType[*cli.ExitError](err); ok {
		return exit
	}
	wrong, ok := errors.AsType[*findingsError](err)
	if !ok {
		return misuse(err)
	}
	if err := lint.Print(env.ErrOut, env.Style(), env.Terminal(), wrong.findings); err != nil {
		return err
	}
	return &cli.ExitError{Code: code}
}

func (o *options) show(env *cli.Env, r *rendering) error {
	if o.output.Structured() {
		return o.output.Write(env.Out, r.result)
	}
	head := []string{"PavProvisioner " + r.provisioner.Name}
	if len(r.used) > 0 {
		head[0] += " with " + strings.Join(r.used, ", ")
	}
	return write(env.Out, env.Style(), head, r.result)
}

// complaint reports why phases are missing, and returns the error that sets the exit status; nil if none is missing.
func complaint(env *cli.Env, r *rendering, d source.Document, code int) error {
	if err := r.complain(env, env.Style(), d); err != nil {
		return err
	}
	if len(r.failures) > 0 {
		return &cli.ExitError{Code: code}
	}
	return nil
}

// showDiff compares with the rendering of another definition, with the same objects.
func (o *options) showDiff(ctx context.Context, env *cli.Env, g *given, chosen object, after *rendering) error {
	if err := complaint(env, after, chosen.Document, 2); err != nil {
		return err
	}
	before := Result{}
	other, err := o.other(ctx, env, chosen.Name())
	if err != nil {
		return o.refuse(env, err, 2)
	}
	if other != nil {
		r, err := o.of(ctx, g, *other)
		if err != nil {
			return o.refuse(env, err, 2)
		}
		if err := complaint(env, r, other.Document, 2); err != nil {
			return err
		}
		before = r.result
	}
	differ, err := compare(ctx, env, before, after.result)
	if err != nil {
		return misuse(err)
	}
	if differ {
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// other returns the definition to compare with; nil if the cluster has none.
func (o *options) other(ctx context.Context, env *cli.Env, name string) (*object, error) {
	if o.diff != installed {
		g, err := read(env.In, []string{o.diff}, nil)
		if err != nil {
			return nil, err
		}
		if len(g.provisioners) == 1 {
			name = ""
		}
		found, err := g.provisioner(name)
		return &found, err
	}
	cluster, err := env.Connect()
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(pavv1.GroupVersion.WithKind("PavProvisioner"))
	err = cluster.Objects.Get(ctx, client.ObjectKey{Name: name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, needs("get", "pavprovisioners", "", err)
	}
	return &object{source.Installed(live.Object)}, nil
}
