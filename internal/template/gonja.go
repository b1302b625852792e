package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"github.com/nikolalohinski/gonja/v2/parser"
)

// Bounds that no honest template meets.
const (
	maxSource = 64 << 10
	maxOutput = 1 << 20
)

const sourceName = "/template"

var errTooLong = errors.New("the text is longer than 1 MiB")

// render evaluates one template and returns its text, and whether it set the variable yaml to true.
func render(ctx context.Context, source string, vars Variables, getPVC GetPVC) (text string, isYAML bool, err error) {
	if len(source) > maxSource {
		return "", false, fmt.Errorf("the template is longer than %d bytes", maxSource)
	}
	// gonja panics on some templates: a definition's mistake must not end the agent.
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the template cannot be evaluated")
		}
	}()

	names := maps.Clone(map[string]any(vars))
	var failed error // of get_pvc; gonja passes on only its text
	names["get_pvc"] = getPVCFunction(ctx, getPVC, &failed)
	environment := &exec.Environment{
		Context:           exec.EmptyContext().Update(builtins.GlobalFunctions).Update(builtins.GlobalVariables).Update(exec.NewContext(names)),
		Filters:           filters,
		Tests:             builtins.Tests,
		ControlStructures: controlStructures,
		Methods:           builtins.Methods,
	}
	cfg := settings()
	loader, err := loaders.NewMemoryLoader(map[string]string{sourceName: source})
	if err != nil {
		return "", false, err
	}
	compiled, err := exec.NewTemplate(sourceName, cfg, loader, environment)
	if err != nil {
		return "", false, withoutSource(err)
	}

	out := &boundedWriter{}
	if err := exec.NewRenderer(environment, out, cfg, loader, compiled).Execute(); err != nil {
		return "", false, cmp.Or(failed, withoutSource(err))
	}
	flag, _ := environment.Context.Get("yaml")
	isYAML, _ = flag.(bool)
	return out.text.String(), isYAML, nil
}

func settings() *config.Config {
	cfg := config.New()
	cfg.StrictUndefined = true
	cfg.TrimBlocks = true
	cfg.LeftStripBlocks = true
	return cfg
}

// controlStructures are gonja's without those that read other templates.
var controlStructures = func() *exec.ControlStructureSet {
	set := map[string]parser.ControlStructureParser{}
	for _, name := range []string{"for", "if", "set", "macro", "call", "filter", "with", "raw", "block", "autoescape"} {
		if structure, ok := builtins.ControlStructures.Get(name); ok {
			set[name] = structure
		}
	}
	return exec.NewControlStructureSet(set)
}()

var filters = exec.NewFilterSet(map[string]exec.FilterFunction{
	"tobash": func(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
		if in.IsError() {
			return in
		}
		if !in.IsString() && !in.IsNumber() {
			return exec.AsValue(errors.New("tobash takes a string or a number"))
		}
		quoted, err := quoteForBash(in.String())
		if err != nil {
			return exec.AsValue(err)
		}
		return exec.AsSafeValue(quoted)
	},
}).Update(builtins.Filters)

// quoteForBash returns text as one word of Bash, without newlines.
func quoteForBash(text string) (string, error) {
	if strings.ContainsRune(text, 0) {
		return "", errors.New("tobash cannot quote a NUL character")
	}
	if !strings.Contains(text, "\n") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
	}
	return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'", nil
}

// lookupError says that a claim could not be looked up, which is no mistake of the template.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }
func (e *lookupError) Unwrap() error { return e.err }

func getPVCFunction(ctx context.Context, getPVC GetPVC, failed *error) func(*exec.VarArgs) (any, error) {
	return func(args *exec.VarArgs) (any, error) {
		var name, namespace string
		if err := args.Take(
			exec.PositionalArgument("name", nil, exec.StringArgument(&name)),
			exec.PositionalArgument("namespace", nil, exec.StringArgument(&namespace)),
		); err != nil {
			return nil, exec.ErrInvalidCall(err)
		}
		claim, err := getPVC(ctx, name, namespace)
		if err == nil {
			return claim, nil
		}
		*failed = fmt.Errorf("get_pvc(%q, %q): %w", name, namespace, err)
		if !errors.Is(err, ErrNoClaim) {
			*failed = &lookupError{*failed}
		}
		return nil, *failed
	}
}

// withoutSource returns the innermost reason: gonja puts the whole source of a template into the outer ones.
func withoutSource(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	const limit = 300
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return errors.New(text)
}

type boundedWriter struct{ text strings.Builder }

func (w *boundedWriter) Write(p []byte) (int, error) {
	if w.text.Len()+len(p) > maxOutput {
		return 0, errTooLong
	}
	return w.text.Write(p)
}
