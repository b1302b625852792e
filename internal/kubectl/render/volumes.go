package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/template"
)

// showVolumes shows how the pods of the volumes in the cluster differ between two definitions.
func (o *options) showVolumes(ctx context.Context, env *cli.Env, chosen object) error {
	after, err := o.definition(chosen)
	if err != nil {
		return o.refuse(env, err, 2)
	}
	other, err := o.other(ctx, env, chosen.Name())
	if err != nil {
		return o.refuse(env, err, 2)
	}
	if other == nil {
		return misuse(fmt.Errorf("there is no PavProvisioner %q in the cluster", chosen.Name()))
	}
	// The agents use the definition in the cluster even if it has mistakes.
	before, err := definitionOf(other.Object)
	if err != nil {
		return misuse(err)
	}
	// The scope that is in force depends on the stages that exist, not on the definition.
	after.Status.StagingScope = before.Scope()
	before.Status.StagingScope = before.Scope()
	found, err := o.compareVolumes(ctx, env, before, after)
	if err != nil {
		return misuse(err)
	}
	return found.show(ctx, env, chosen, settingsOf(before, after))
}

// compareVolumes renders two definitions for all volumes.
func (o *options) compareVolumes(ctx context.Context, env *cli.Env, before, after *pavv1.PavProvisioner) (*report, error) {
	connection, err := env.Connect()
	if err != nil {
		return nil, err
	}
	volumes := &cluster{Reader: connection.Objects, provisioner: after.Name}
	templates := [2]*template.Evaluator{template.NewEvaluator(o.limits), template.NewEvaluator(o.limits)}
	found := &report{}
	err = volumes.each(ctx, func(v *existing, err error) error {
		if err != nil {
			return found.add(v, []change{{err: err}})
		}
		old := o.renderExisting(ctx, before, templates[0], v)
		changed := o.renderExisting(ctx, after, templates[1], v)
		if err := ctx.Err(); err != nil {
			return err
		}
		return found.add(v, changesOf(old, changed))
	})
	if err != nil {
		return nil, err
	}
	if volumes.unbound > 0 {
		volumes.note(fmt.Sprintf("not rendered, as they are bound to no claim: PersistentVolumes (%d)", volumes.unbound))
	}
	for _, note := range volumes.notes {
		if _, err := fmt.Fprintln(env.ErrOut, env.Style().Dim(cli.Plain(note))); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// setting is a field of a definition that concerns all volumes, and is not a part of a workflow.
type setting struct {
	field, before, after, effect string
}

// settingsOf returns the settings that two definitions have different values of.
func settingsOf(before, after *pavv1.PavProvisioner) []setting {
	fields := []struct {
		name, effect string
		value        func(*pavv1.PavProvisionerSpec) string
	}{
		{"spec.provisioningModes", "for new claims, and static volumes the next time they are staged",
			func(s *pavv1.PavProvisionerSpec) string { return fmt.Sprint(s.ProvisioningModes) }},
		{"spec.volumeCreation.dataSources", "for new claims",
			func(s *pavv1.PavProvisionerSpec) string { return fmt.Sprint(creationOf(s).DataSources) }},
		{"spec.volumeCreation.dependsOnSource", "at once, for volumes that have a source",
			func(s *pavv1.PavProvisionerSpec) string { return fmt.Sprint(creationOf(s).DependsOnSource) }},
		{"spec.volumeStaging.scope", "once the provisioner has no PavStages",
			func(s *pavv1.PavProvisionerSpec) string {
				return orDefault(s.VolumeStaging.Scope, pavv1.StagingScopeNode)
			}},
		{"spec.volumeStaging.fsGroupPolicy", "at once, for pods that start",
			func(s *pavv1.PavProvisionerSpec) string {
				return orDefault(s.VolumeStaging.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
			}},
		{"spec.volumeStaging.recovery", "at once",
			func(s *pavv1.PavProvisionerSpec) string {
				return orDefault(s.VolumeStaging.Recovery, pavv1.StagingRecoveryRestage)
			}},
	}
	var changed []setting
	for _, f := range fields {
		if old, now := f.value(&before.Spec), f.value(&after.Spec); old != now {
			changed = append(changed, setting{f.name, old, now, f.effect})
		}
	}
	return changed
}

func creationOf(s *pavv1.PavProvisionerSpec) pavv1.VolumeCreation {
	if s.VolumeCreation == nil {
		return pavv1.VolumeCreation{}
	}
	return *s.VolumeCreation
}

func orDefault[T ~string](value, byDefault T) string {
	if value == "" {
		value = byDefault
	}
	return string(value)
}

// show writes the report, and returns the error that sets the exit status: 1 if something differs, and 2 if something
// cannot be rendered.
func (r *report) show(ctx context.Context, env *cli.Env, chosen object, settings []setting) error {
	tallies, groups := r.sorted()
	var head strings.Builder
	style := env.Style()
	for _, s := range settings {
		fmt.Fprintf(&head, "%s: %s changes from %s to %s; it takes effect %s\n", style.Bold("all volumes"), s.field, s.before, s.after, s.effect)
	}
	for _, t := range tallies {
		line := style.Bold(fmt.Sprintf("%d of %d volumes", t.count, r.total)) + ": " + t.what
		if !t.failed {
			line += "; it takes effect " + effects[t.phase]
		}
		head.WriteString(line + "\n")
	}
	if len(settings) == 0 && len(tallies) == 0 {
		fmt.Fprintf(&head, "0 of %d volumes: nothing changes\n", r.total)
	}
	if _, err := fmt.Fprint(env.Out, head.String()); err != nil {
		return err
	}
	for _, g := range groups {
		if err := g.show(ctx, env, chosen); err != nil {
			return misuse(err)
		}
	}
	if err := r.showMore(env); err != nil {
		return err
	}
	switch {
	case r.failed():
		return &cli.ExitError{Code: 2}
	case len(settings) > 0 || len(tallies) > 0:
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// show writes the volumes of a group, and how the first of them changes.
func (g *group) show(ctx context.Context, env *cli.Env, chosen object) error {
	style := env.Style()
	table := &cli.Table{}
	for _, v := range g.volumes {
		table.Row(cli.Plain(v.claim), cli.Plain(v.name))
	}
	if rest := g.count - len(g.volumes); rest > 0 {
		table.Row(fmt.Sprintf("and %d more", rest))
	}
	w := env.Out
	if g.err != nil {
		w = env.ErrOut
	}
	if _, err := fmt.Fprintf(w, "\n%s\n", style.Bold(fmt.Sprintf("%s, for %s:", g.what(), count(g.count)))); err != nil {
		return err
	}
	if err := table.Write(w, "  "); err != nil {
		return err
	}
	if g.err != nil {
		r := rendering{failures: []failure{{cmp.Or(g.phase, "reading"), g.err}}}
		return r.complain(env, style, chosen.Document)
	}
	_, err := compare(ctx, env, resultOf(g.before), resultOf(g.after))
	return err
}

func resultOf(phase *Phase) Result {
	if phase == nil {
		return Result{}
	}
	return Result{Phases: []Phase{*phase}}
}

func count(n int) string {
	if n == 1 {
		return "1 volume"
	}
	return fmt.Sprintf("%d volumes", n)
}

// showMore says how many volumes change in ways that are not shown.
func (r *report) showMore(env *cli.Env) error {
	for _, phase := range slices.Sorted(maps.Keys(r.more)) {
		if _, err := fmt.Fprintf(env.Out, "\n%s differs in still other ways for %s\n", phase, count(r.more[phase])); err != nil {
			return err
		}
	}
	return nil
}

// conflict returns why flags cannot be used together with --volumes; nil if they can.
func (o *options) conflict() error {
	if o.diff == "" {
		return errors.New("--volumes needs --diff: it shows what an edit changes")
	}
	for name, value := range map[string]string{"pvc": o.pvc, "sc": o.sc, "pv": o.pv, "node": o.node, "handle": o.handle, "source": o.source} {
		if value != "" {
			return fmt.Errorf("--%s cannot be used with --volumes, which takes the objects from the cluster", name)
		}
	}
	if o.readOnly {
		return errors.New("--read-only cannot be used with --volumes, which takes the objects from the cluster")
	}
	return nil
}
