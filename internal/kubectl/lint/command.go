package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/source"
	"github.com/albertofaria/pav/internal/template"
)

const group = pavv1.Group

// options are the command's flags.
type options struct {
	strict, recursive bool

	// dryRun is "none", or "server" to ask the API server, too.
	dryRun string
	limits template.Limits
	output cli.Output
}

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunServer = "server"
)

// Command returns the command "lint".
func Command(env *cli.Env) *cobra.Command {
	o := &options{limits: template.DefaultLimits()}
	command := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check PavProvisioners in files, without a cluster",
		Long: `Check the PavProvisioners in YAML or JSON files, and say what admission would say of them, with the
line of the file. No cluster is needed. A FILE may be a directory, or "-" for standard input. Objects of
other kinds are passed over.

The exit status is 0 where there are no errors, 1 where there are, and 2 where nothing could be checked.`,
		Example: `  kubectl pav lint provisioner.yaml
  kubectl pav lint --strict -R examples/
  kustomize build . | kubectl pav lint -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			if o.dryRun != dryRunNone && o.dryRun != dryRunServer {
				return &cli.ExitError{Code: 2, Err: fmt.Errorf("--dry-run: %q is neither %q nor %q", o.dryRun, dryRunServer, dryRunNone)}
			}
			if err := o.limits.Validate(); err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			return o.run(command, env, names)
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&o.strict, "strict", "W", false, "fail if there are warnings, too")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, `"server" to send a dry run to the cluster, too, which checks more, or "none"`)
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "also check the files in subdirectories")
	o.limits.AddFlags(flags)
	o.output.AddFlag(flags)
	return command
}

// Result is the output of -o.
type Result struct {
	// Provisioners is the number of PavProvisioners that were checked.
	Provisioners int       `json:"provisioners"`
	Errors       int       `json:"errors"`
	Warnings     int       `json:"warnings"`
	Findings     []Finding `json:"findings"`
}

func (o *options) run(command *cobra.Command, env *cli.Env, names []string) error {
	files, err := expand(names, o.recursive)
	if err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	result, documents, err := check(env, o.limits, files)
	if err != nil {
		return &cli.ExitError{Code: 2, Err: err}
	}
	if result.Provisioners == 0 && len(result.Findings) == 0 {
		return &cli.ExitError{Code: 2, Err: fmt.Errorf("there is no PavProvisioner in %s", strings.Join(names, ", "))}
	}
	if o.dryRun == dryRunServer {
		if err := askAll(command.Context(), env, &result, documents); err != nil {
			return &cli.ExitError{Code: 2, Err: err}
		}
	}
	result.count()
	if err := o.report(env, result); err != nil {
		return err
	}
	if result.Errors > 0 || o.strict && result.Warnings > 0 {
		return &cli.ExitError{Code: 1}
	}
	return nil
}

// expand returns the files among the arguments, and the files in directories among the arguments.
func expand(names []string, recursive bool) ([]string, error) {
	var files []string
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" {
			files = append(files, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		found, err := filesIn(name, recursive)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: there are no files in this directory that end in %s", name, strings.Join(endings, ", "))
		}
		files = append(files, found...)
	}
	return files, nil
}

// endings are the extensions of the files that are read in directories, the same as kubectl's.
var endings = []string{".yaml", ".yml", ".json"}

func filesIn(root string, recursive bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(endings, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// check checks all PavProvisioners in the files, and returns them.
func check(env *cli.Env, limits template.Limits, files []string) (Result, []source.Document, error) {
	result := Result{Findings: []Finding{}}
	checker := definition.NewChecker(limits)
	var provisioners []source.Document
	for _, name := range files {
		documents, err := source.Open(name, env.In)
		broken, err := source.Errors(err)
		if err != nil {
			return result, nil, err
		}
		for _, wrong := range broken {
			result.Findings = append(result.Findings, Broken(wrong))
		}
		for _, d := range documents {
			if !Is(d) {
				continue
			}
			provisioners = append(provisioners, d)
			result.Findings = append(result.Findings, Check(checker, d)...)
		}
	}
	result.Findings = append(result.Findings, sharedStores(provisioners)...)
	result.Provisioners = len(provisioners)
	return result, provisioners, nil
}

// Check returns the findings about a PavProvisioner, in the order of their positions in the file.
func Check(checker *definition.Checker, d source.Document) []Finding {
	var findings []Finding
	for _, found := range checker.Check(d.Object) {
		findings = append(findings, At(d, found))
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return findings
}

func (r *Result) count() {
	r.Errors, r.Warnings = 0, 0
	for _, f := range r.Findings {
		if f.Severity == definition.Error {
			r.Errors++
		} else {
			r.Warnings++
		}
	}
}

func (o *options) report(env *cli.Env, result Result) error {
	if o.output.Structured() {
		return o.output.Write(env.Out, result)
	}
	style := env.Style()
	if err := Print(env.Out, style, env.Terminal(), result.Findings); err != nil {
		return err
	}
	if !env.Terminal() {
		return nil
	}
	words := style.Good("no errors")
	if result.Errors > 0 {
		words = style.Bad(plural(result.Errors, "error"))
	}
	if result.Warnings > 0 {
		words += ", " + style.Warn(plural(result.Warnings, "warning"))
	}
	_, err := fmt.Fprintf(env.Out, "%s: %s\n", plural(result.Provisioners, "PavProvisioner"), words)
	return err
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
