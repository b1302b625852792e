package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is one thing that the tutorial tells its reader to do: to save a file, to run a command, or to put a line into a file.
var step = regexp.MustCompile("(?ms)^Save this as `([^`]+)`:\n\n```yaml\n(.*?)```|^    (kubectl [^\n]*)|^```sh\n(.*?)\n```")

// The tutorial works as it is written: its files, its commands in their order, and what it says that one sees.
func TestTutorial(t *testing.T) {
	namespace := beside(t)
	page, err := os.ReadFile("docs/tutorial.md")
	must(t, err)
	directory := t.TempDir()
	run := func(ctx context.Context, command string) said {
		shell := pavCommand(ctx, t, "")
		shell.Path, shell.Args, shell.Dir = "/bin/bash", []string{"bash", "-c", command}, directory
		shell.Env = append(shell.Env, "KUBECONFIG="+filepath.Join(directory, "kubeconfig"))
		return finish(t, shell)
	}
	config, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(directory, "kubeconfig"), config, 0o600))
	run(t.Context(), "kubectl config set-context --current --namespace="+namespace).wants(t, 0)

	type want struct {
		code  int
		words []string
	}
	// What is seen, each time that the command is run. Of the others, only that they succeed.
	seen := map[string][]want{
		"kubectl pav render memory.yaml":        {{0, []string{"kind: Pod", "mount -t tmpfs"}}},
		"kubectl pav test memory.yaml":          {{0, []string{"memory passed: ", "the data was lost when the volume left the node"}}},
		"kubectl exec worker -- df -h /scratch": {{0, []string{"16.0M"}}},
		"kubectl pav describe pvc large":        {{1, []string{"FAILING", "a capacity of 1Gi, but the provisioner's volumes have at most 64Mi"}}},
		"kubectl pav describe pod worker":       {{0, []string{"HEALTHY"}}, {1, []string{"FAILING", "there is no such file"}}},
	}
	good, commands := "", 0
	for _, found := range step.FindAllStringSubmatch(string(page), -1) {
		file, content, command, line := found[1], found[2], found[3], found[4]
		path := filepath.Join(directory, "memory.yaml")
		switch {
		case file != "":
			must(t, os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600))
		case line != "":
			text, err := os.ReadFile(path) //nolint:gosec // The test has written it.
			must(t, err)
			good = string(text)
			const before = "                mount -t tmpfs"
			must(t, os.WriteFile(path, []byte(strings.Replace(good, before, "                "+line+"\n"+before, 1)), 0o600))
		case strings.HasPrefix(command, "kubectl pav new "):
			run(t.Context(), command).wants(t, 0) // It writes a file, which others test.
		default:
			commands++
			wanted := want{}
			if all := seen[command]; len(all) > 0 {
				wanted, seen[command] = all[0], all[1:]
			}
			switch {
			case strings.HasPrefix(command, "kubectl pav describe"):
				eventually(t, command, func(ctx context.Context) error { return run(ctx, command).check(wanted.code, wanted.words...) })
			default:
				s := run(t.Context(), command).wants(t, wanted.code, wanted.words...)
				if strings.HasPrefix(command, "kubectl pav lint") && s.out+s.err != "" {
					t.Errorf("it prints %s%s, and should print nothing", s.out, s.err)
				}
			}
			if wanted.code == 1 && good != "" { // "Remove the line, and apply memory.yaml again"
				must(t, os.WriteFile(path, []byte(good), 0o600))
				run(t.Context(), "kubectl apply -f memory.yaml").wants(t, 0)
				run(t.Context(), "kubectl wait --for=condition=Ready pod/worker --timeout=10m").wants(t, 0)
			}
		}
	}
	for command, left := range seen {
		if len(left) > 0 {
			t.Errorf("the tutorial runs %q %d times too few", command, len(left))
		}
	}
	if commands < 15 {
		t.Errorf("the tutorial has only %d commands", commands)
	}
	wantNothingOf(t, "memory")
}
