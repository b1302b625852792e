package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A command that is wrong in any of these ways is found.
func TestCheck(t *testing.T) {
	checker, err := NewChecker(root)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"kubectl pav describe pvc/data -n apps":                                         "",
		"kubectl pav describe sample":                                                   "",
		"kubectl pav describe":                                                          "",
		"kubectl pav frobnicate x":                                                      `unknown command "frobnicate"`,
		"kubectl pav describe node/x":                                                   `"node/x" is not an object of this command`,
		"kubectl pav logs pvc/data --phase mounting":                                    "it is one of",
		"kubectl pav new fuse":                                                          "accepts 2 arg(s), received 1",
		"kubectl pav get --everything":                                                  "unknown flag: --everything",
		"kubectl -n pav logs -l app.kubernetes.io/component=node-agent --tail=-1":       "",
		"kubectl -n pav logs -l a=b --field-selector spec.nodeName=x":                   "unknown flag: --field-selector",
		"kubectl -n pav logs -l app.kubernetes.io/component=agent":                      "selects no pod",
		"kubectl -n pav logs --tail=1":                                                  "there is no pod",
		"kubectl gett pods":                                                             `unknown command "gett"`,
		"kubectl rollout state daemonset/node-agent":                                    `has no command "state"`,
		"kubectl -n pav rollout status daemonset/node-agents":                           `deployment.yaml has no daemonset "node-agents"`,
		"kubectl -n pav rollout status deployment/controller-agent":                     "",
		"kubectl get pavvol,pavstage -o wide":                                           "",
		"kubectl get pavvols":                                                           `there is no kind "pavvols"`,
		"kubectl get pods -l a,b!=c":                                                    "",
		`kubectl get pods -l "a=("`:                                                     "unable to parse requirement",
		"kubectl get pods --field-selector x":                                           "invalid selector",
		"kubectl get pods -l pav.albertofaria.github.io/workflows":                      "no label or annotation",
		"kubectl get pv x -o jsonpath={.spec":                                           "unclosed action",
		"kubectl delete pavvol":                                                         "no object is named",
		"kubectl delete pv/x pavvolume/x":                                               "",
		"kubectl delete pv/x pavvolumen/x":                                              `there is no kind "pavvolumen"`,
		"kubectl delete crd pavprovisioners.pav.albertofaria.github.io":                 "",
		"kubectl delete crd pavprovisioner.pav.albertofaria.github.io":                  "deployment.yaml has no customresourcedefinition",
		`kubectl patch pvc x -p '{"spec"}'`:                                             "is no JSON",
		"kubectl label namespace x pav.albertofaria.github.io/allow-pods":               "is no change",
		"kubectl label namespace x pav.albertofaria.github.io/allow-pods=true":          "",
		"kubectl explain pav.spec.volumeStaging.scope":                                  "",
		"kubectl explain pav.spec.stagingScope":                                         `has no field "stagingScope"`,
		"kubectl create -f provisioners.yaml":                                           "there is no file provisioners.yaml",
		"helm install pav deploy/chart --set a=b":                                       "",
		"helm instal pav deploy/chart":                                                  `unknown command "instal"`,
		"helm upgrade pav deploy/chart --no-such-flag":                                  "unknown flag",
		"make test-unit":                                                                "",
		"make tests":                                                                    "No rule to make target",
		"make simulate SEEDS=1000":                                                      "",
		"make simulate SEEDZ=1000":                                                      "the Makefile does not know SEEDZ",
		`make kubectl ARGS="get pods -A"`:                                               "",
		`make kubectl ARGS="get pods -Z"`:                                               "unknown shorthand flag",
		"kubectl get pods -o name | xargs kubectl delete -n pav-pods --no-such-flag":    "unknown flag",
		"kubectl -n x logs $(kubectl -n x get podds -l a=b -o name)":                    `there is no kind "podds"`,
		"kubectl patch pv x -p '{}' && kubectl delete pv/x foo/x   # or give up":        `there is no kind "foo"`,
		"kubectl create -f deployment.yaml    # or: helm install pav deploy/chart --xx": "unknown flag",
	} {
		t.Run(command, func(t *testing.T) {
			found, err := ofShell("docs/operating.md", command)
			if err != nil || len(found) == 0 {
				t.Fatalf("found %q, %v", found, err)
			}
			var problems []string
			for _, p := range found {
				if err := checker.Check(t.Context(), p); err != nil {
					problems = append(problems, err.Error())
				}
			}
			if got := strings.Join(problems, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func texts(commands []Printed) []string {
	var all []string
	for _, p := range commands {
		all = append(all, strings.Join(p.Words, " "))
	}
	return all
}

func TestOfProse(t *testing.T) {
	for text, want := range map[string][]string{
		"it failed; see kubectl logs -n a b --all-containers, or stop it with kubectl pav retry pvc/x -n y": {"kubectl logs -n a b --all-containers", "kubectl pav retry pvc/x -n y"},
		"run: kubectl delete crd a.b.c, which waits":                                                        {"kubectl delete crd a.b.c"},
		"are the agents running? kubectl -n pav get pods: no":                                               {"kubectl -n pav get pods"},
		`say so: kubectl annotate pavstage x 'k={"copies":true}'`:                                           {`kubectl annotate pavstage x k={"copies":true}`},
		`after "kubectl delete crd x", nothing`:                                                             {"kubectl delete crd x"},
		"`kubectl get pv` (see below)":                                                                      {"kubectl get pv"},
		"logs $(kubectl get pods, all)":                                                                     {"kubectl get pods"},
		"kubectl -n x logs $(kubectl -n x get pods -o name)":                                                {"kubectl -n x logs sample", "kubectl -n x get pods -o name"},
	} {
		found, err := ofProse("x", text, beginsCommand)
		if diff := cmp.Diff(want, texts(found)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func write(t *testing.T, name, text string) (root string) {
	t.Helper()
	root = t.TempDir()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOfPage(t *testing.T) {
	const page = "Use `kubectl get pv` or `kubectl\nget pvc`, not `ls`, nor `kubectl …`.\n\n" +
		"    kubectl create -f x.yaml    # or: helm install pav x\n    kubectl get pods | grep x\n\n" +
		"```console\n$ kubectl pav get\nNext:\n    kubectl edit pav x\n```\n\n```yaml\nkubectl: no\n```\n"
	want := []string{
		"kubectl get pv", "kubectl get pvc", "kubectl create -f x.yaml", "helm install pav x", "kubectl get pods", "kubectl pav get", "kubectl edit pav x",
	}
	found, err := OfPage(write(t, "page.md", page), "page.md")
	if diff := cmp.Diff(want, texts(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const usage = "| | |\n|---|---|\n| `logs pvc\\|pod/NAME [--phase P] [-f]` | `kubectl get pv` |\n\n| row | |\n|---|---|\n| `leftovers` | none |\n"
	want = []string{
		"kubectl pav logs pvc/NAME", "kubectl pav logs pod/NAME", "kubectl pav logs pvc/NAME --phase staging -f", "kubectl pav logs pod/NAME --phase staging -f", "kubectl get pv",
	}
	found, err = OfPage(write(t, usagePage, usage), usagePage)
	if diff := cmp.Diff(want, texts(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOfSource(t *testing.T) {
	const source = "package x\n\n// kubectl get nothing\nvar a = \"kubectl delete \" + kind + \" -n \" + b + \"; then\"\n" +
		"var c = fmt.Sprintf(\"%s: see kubectl logs -n %s %[1]s --tail=%d\", d, e, f)\nvar g = `\n  kubectl pav get\n  kubectl pav version\n`\n"
	want := []string{"kubectl delete sample -n sample", "kubectl logs -n sample sample --tail=1", "kubectl pav get", "kubectl pav version"}
	found, err := OfSource(write(t, "x.go", source), "x.go")
	if diff := cmp.Diff(want, texts(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOfMakefile(t *testing.T) {
	const makefile = "a: b ## Do it: make a X=1, or Y=2\nb: ## Write it: run 'make c' first\nc: ## Make things\n\td ## make e\n"
	found, err := OfMakefile(write(t, "Makefile", makefile), "Makefile")
	if diff := cmp.Diff([]string{"make a X=1", "make c"}, texts(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
