package simulation

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Reasons why a function of PaV may start a goroutine or select between channels. Each ensures that a run depends on
// nothing but its seed.
const (
	elsewhere   = "the world has another in its place, or never calls it"
	orCanceled  = "one channel and the end of a context: the world ends contexts while nothing else goes on"
	neverBlocks = "never blocks"
	orLater     = "the world moves its clock only when everybody waits, and wakes one after the other"
	oneProbe    = "the caller waits for it at once, and the world's probe answers or never does"
)

// concurrent lists all such functions with their reasons.
var concurrent = map[string]string{
	"internal/admission.(*server).Start":                    elsewhere,
	"internal/admission.(*server).listens":                  elsewhere,
	"internal/admission.enter":                              elsewhere,
	"internal/controller.export":                            elsewhere,
	"internal/controller/snapshot.(*Reconciler).checkAlone": orCanceled,
	"internal/reconcile.(*LiveReads).ask":                   orCanceled,
	"internal/reconcile.(*LiveReads).do":                    orCanceled,
	"internal/controller/provisioner.(*Reconciler).judge":   orCanceled,
	"internal/definition.(*Checker).enter":                  orLater,
	"internal/reconcile.repeat":                             elsewhere,
	"internal/mount.(*Namespace).do":                        elsewhere,
	"internal/mount.onOwnThread":                            elsewhere,
	"internal/node/pavdir.(*Directories).Sync":              elsewhere,
	"internal/node/pavdir.(*syncs).wait":                    elsewhere,
	"internal/node/pavdir.(*watcher).run":                   elsewhere,
	"internal/node/pavdir.newWatcher":                       elsewhere,
	"internal/node/csi.(*Registry).Run":                     elsewhere,
	"internal/node/csi.(*Registry).wake":                    elsewhere,
	"internal/node/csi.(*provisioners).register":            elsewhere,
	"internal/node/csi.(*sockets).Accept":                   elsewhere,
	"internal/node/csi.(*sockets).ended":                    elsewhere,
	"internal/node/csi.(*sockets).pass":                     elsewhere,
	"internal/node/csi.await":                               elsewhere,
	"internal/node/stage.(*Index).namesOfUnlabelled":        orCanceled,
	"internal/node/stage.(*inflight).interrupt":             orCanceled,
	"internal/node/stage.(*room).reserve":                   orCanceled,
	"internal/node/stage.(*task).wait":                      orLater,
	"internal/node/stage.watchOnce":                         orCanceled,
	"internal/node/health.(*Tracker).Probe":                 oneProbe,
	"internal/node/health.isDone":                           oneProbe,
	"internal/node/stage.wake":                              neverBlocks,
	"internal/observability.(*guard).codeFor":               elsewhere,
	"internal/observability.ReturnMemory":                   elsewhere,
}

// TestSeams_NoOtherGoroutines checks that only the listed functions have go and select statements, of all functions of
// PaV that the world may run. Such a statement can give the order of events to the Go runtime, which chooses the next
// goroutine and one of several ready channels.
func TestSeams_NoOtherGoroutines(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{.ImportPath}} {{.Dir}}{{end}}", "./agents", "./node").Output()
	if err != nil {
		t.Fatalf("listing the packages that the world runs: %v", err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(listed)) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if short, _ := strings.CutPrefix(name, "github.com/albertofaria/pav/"); strings.HasPrefix(short, "internal/") || strings.HasPrefix(short, "jinja") {
			for _, function := range concurrentIn(t, dir) {
				found[short+"."+function] = true
			}
		}
	}
	got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(concurrent))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("functions with goroutines or selects (-listed +found); list one with the reason why a run does not depend on it:\n%s", diff)
	}
}

// concurrentIn returns the functions of a package that have a go or a select statement.
func concurrentIn(t *testing.T, dir string) (functions []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if f, is := declaration.(*ast.FuncDecl); is && chooses(f) {
				functions = append(functions, nameOf(f))
			}
		}
	}
	return functions
}

func chooses(f *ast.FuncDecl) (does bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.SelectStmt:
			does = true
		}
		return !does
	})
	return does
}

// nameOf returns the name of a function, with its receiver, such as "(*Live).ask".
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	switch receiver := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return "(*" + receiver.X.(*ast.Ident).Name + ")." + f.Name.Name
	case *ast.Ident:
		return receiver.Name + "." + f.Name.Name
	}
	return "?." + f.Name.Name
}
