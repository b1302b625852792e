package definition

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// with returns a definition with a staging pod and with additional fields in its spec.
func with(pod any, spec map[string]any) map[string]any {
	whole := map[string]any{"provisioningModes": []any{"Static"}, "volumeStaging": map[string]any{"podTemplate": pod}}
	maps.Copy(whole, spec)
	return map[string]any{
		"apiVersion": pavv1.GroupVersion.String(), "kind": "PavProvisioner",
		"metadata": map[string]any{"name": "x"}, "spec": whole,
	}
}

func containers(list ...any) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": list}}
}

func nested(depth int, wrap func(any) any) any {
	var value any = "{{ 1 }}"
	for range depth {
		value = wrap(value)
	}
	return value
}

func repeat(value any, times int) []any {
	items := make([]any, times)
	for i := range items {
		items[i] = value
	}
	return items
}

func TestCheck_IsBounded(t *testing.T) {
	const many, most = 9_000, 300_000
	list := func(value any) []any { return repeat(value, many) }
	mapping := map[string]any{}
	var volumes, mounts, devices, lost, variables []any
	for i := range many {
		name := fmt.Sprintf("field-%d", i)
		mapping[name] = "{{ x }}"
		volumes = append(volumes, map[string]any{"name": name, "emptyDir": map[string]any{}})
		mounts = append(mounts, map[string]any{"name": name, "mountPath": "/" + name})
		devices = append(devices, map[string]any{"name": name, "devicePath": "/" + name})
		lost = append(lost, map[string]any{"name": "yield-" + strconv.Itoa(i), "mountPath": "/" + name})
		variables = append(variables, map[string]any{"name": "1=2", "value": name})
	}
	mounted := func(mounts, devices []any) map[string]any {
		return with(map[string]any{"spec": map[string]any{"volumes": volumes, "containers": []any{
			map[string]any{"name": "a", "image": "b:1", "volumeMounts": mounts, "volumeDevices": devices, "env": variables},
		}}}, nil)
	}
	for name, object := range map[string]map[string]any{
		"mappings in mappings":      with(nested(many, func(v any) any { return map[string]any{"spec": v} }), nil),
		"lists in lists":            with(containers(nested(many, func(v any) any { return []any{v} })), nil),
		"nothing":                   {},
		"nil":                       nil,
		"unknown fields":            with(mapping, mapping),
		"labels":                    with(map[string]any{"metadata": map[string]any{"labels": mapping}}, nil),
		"containers of nothing":     with(containers(list(nil)...), nil),
		"containers":                with(containers(list(map[string]any{"name": "a", "image": "b", "env": []any{map[string]any{"name": "{{ pvc.x }}"}}})...), nil),
		"arguments of a shell":      with(containers(map[string]any{"name": "a", "image": "b:1", "command": list("sh")}), nil),
		"options of a shell":        with(containers(map[string]any{"name": "a", "image": "b:1", "command": append([]any{"sh"}, list("-o")...)}), nil),
		"more containers than any":  with(containers(make([]any, maxItems+1)...), nil),
		"modes":                     with(nil, map[string]any{"provisioningModes": list("Static")}),
		"more modes than any":       with(nil, map[string]any{"provisioningModes": repeat("Static", most)}),
		"more volume modes":         with(nil, map[string]any{"volumeValidation": map[string]any{"volumeModes": repeat("Block", most)}}),
		"modes that are mappings":   with(nil, map[string]any{"provisioningModes": []any{map[string]any{"Dynamic": nil}, map[string]any{"Static": nil}}}),
		"modes that are lists":      with(nil, map[string]any{"volumeValidation": map[string]any{"volumeModes": []any{[]any{}, []any{}}}}),
		"mounts":                    mounted(mounts, devices),
		"mounts of no volumes":      mounted(lost, lost),
		"more mounts than any":      mounted(repeat(lost[0], most), nil),
		"volume modes":              with(nil, map[string]any{"volumeValidation": map[string]any{"volumeModes": list("Block")}}),
		"a template of parentheses": with(containers(map[string]any{"name": "{{ " + strings.Repeat("(", many/2) + " }}"}), nil),
		"a script of quotes":        with(containers(map[string]any{"name": "a", "image": "b:1", "command": []any{"sh", "-c", strings.Repeat(`"$(`, many/8) + "{{ handle|tobash }}"}}), nil),
		"a script of documents":     with(containers(map[string]any{"name": "a", "image": "b:1", "command": []any{"sh", "-c", "{{ handle }}" + strings.Repeat("<<A\n", many/8)}}), nil),
		"a long quantity":           with(nil, map[string]any{"volumeCreation": map[string]any{"capacity": strings.Repeat("9", many)}}),
		"a huge quantity":           with(containers(map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "1e999999999"}, "requests": map[string]any{"cpu": "1e999999999"}}}), nil),
		"a huge number":             with(containers(map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": 1e308}}, "ports": []any{map[string]any{"containerPort": 1e300}}}), nil),
		"a long name":               with(map[string]any{strings.Repeat("n", many): 1}, nil),
		"wrong types":               {"apiVersion": []any{}, "kind": 1.5, "metadata": "x", "spec": []any{map[string]any{}}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			findings := NewChecker(template.DefaultLimits()).Check(object)
			const atMost = longest + 10*time.Second // The check ends at once, but the machine may be busy.
			if took := time.Since(begin); took > atMost {
				t.Errorf("the check took %s", took)
			}
			total, errors := 0, 0
			for _, finding := range findings {
				total += len(finding.Message)
				if finding.Severity == Error {
					errors++
				}
			}
			if most := maxFindings + 1; errors > most || len(findings)-errors > most {
				t.Errorf("there are %d findings, %d of them errors", len(findings), errors)
			}
			if total > 100<<10 {
				t.Errorf("the messages have %d bytes", total)
			}
			Pods(object)
		})
	}
}

// counts returns the number of errors and of warnings.
func counts(findings []Finding) (errors, warnings int) {
	for _, f := range findings {
		if f.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

func TestCheck_WarningsNeverRefuse_AndLeaveRoomForErrors(t *testing.T) {
	var list []any
	for i := range maxFindings + 50 {
		list = append(list, map[string]any{"name": fmt.Sprintf("a%d", i), "image": "busybox"})
	}
	checker := NewChecker(template.DefaultLimits())
	findings := checker.Check(with(containers(list...), nil))
	if errors, warnings := counts(findings); errors != 0 || warnings != maxFindings+1 {
		t.Errorf("many warnings: there are %d errors and %d warnings", errors, warnings)
	}
	list = append(list, map[string]any{"name": "no name", "image": "busybox"})
	findings = checker.Check(with(containers(list...), nil))
	if errors, warnings := counts(findings); errors != 1 || warnings != maxFindings+1 {
		t.Errorf("many warnings and an error behind them: there are %d errors and %d warnings", errors, warnings)
	}
	findings = checker.Check(with(containers(repeat(map[string]any{}, maxFindings)...), nil))
	if errors, _ := counts(findings); errors != maxFindings+1 {
		t.Errorf("many errors: there are %d", errors)
	}
}

func TestCheck_OutOfTime_IsReported_AndIsNotAMistake(t *testing.T) {
	good := with(containers(map[string]any{"name": "a", "image": "b:1"}), nil)
	limits := template.DefaultLimits()
	limits.Timeout = time.Nanosecond
	busy := NewChecker(limits)
	for range cap(busy.slots) {
		busy.slots <- struct{}{}
	}
	for name, test := range map[string]struct {
		checker *Checker
		late    bool
	}{
		"in time":                     {NewChecker(template.DefaultLimits()), false},
		"out of time":                 {NewChecker(limits), true},
		"no turn before the deadline": {busy, true},
	} {
		t.Run(name, func(t *testing.T) {
			findings := test.checker.Check(good)
			if Late(findings) != test.late {
				t.Errorf("got late %t: %v", !test.late, findings)
			}
			if errors, _ := counts(findings); errors > 0 {
				t.Errorf("got errors: %v", findings)
			}
		})
	}
}

func TestCheck_DoesNotChangeTheObject_AndIsDeterministic(t *testing.T) {
	checker := NewChecker(template.DefaultLimits())
	for _, file := range files(t, "testdata/*/*.yaml", 80) {
		text, object := read(t, file)
		first := fmt.Sprint(checker.Check(object))
		var again map[string]any
		if err := yaml.Unmarshal([]byte(text), &again); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(again) != fmt.Sprint(object) {
			t.Errorf("%s: the check changed the object", file)
		}
		if second := fmt.Sprint(checker.Check(again)); second != first {
			t.Errorf("%s: first %s, then %s", file, first, second)
		}
	}
}
