package template

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPrograms(t *testing.T) {
	first, second := &Program{}, &Program{}
	field := Field{Object: "u", Generation: 1, Path: "spec.x"}
	later := Field{Object: "u", Generation: 2, Path: "spec.x"}

	p := newPrograms(100)
	if p.get(field) != nil {
		t.Error("found what was never put")
	}
	p.put(field, first, 10)
	if p.get(field) != first || p.get(later) != nil || p.get(Field{Object: "v", Generation: 1, Path: "spec.x"}) != nil {
		t.Error("one field was taken for another")
	}
	p.put(later, second, 10)
	if p.get(field) != nil || p.get(later) != second || p.size != 10 {
		t.Error("the earlier generation was not forgotten")
	}

	p.put(Field{Object: "w", Generation: 1, Path: "spec.y"}, first, 101)
	p.put(Field{Generation: 1, Path: "spec.x"}, first, 1)
	if len(p.entries) != 1 {
		t.Errorf("got %v, want neither what is too large nor what is of no object", p.entries)
	}
	for i := range 1000 {
		p.put(Field{Object: types.UID(fmt.Sprint(i)), Generation: 1, Path: "spec.x"}, first, 7)
		if p.size > 100 || len(p.entries) > 14 {
			t.Fatalf("%d bytes in %d fields are remembered", p.size, len(p.entries))
		}
	}
	if p.get(Field{Object: "999", Generation: 1, Path: "spec.x"}) != first {
		t.Error("the last one was forgotten")
	}
}

func TestEvaluator_RemembersEachGeneration(t *testing.T) {
	e := NewEvaluator(DefaultLimits())
	for generation, text := range []string{"a", "b"} {
		field := Field{Object: "u", Generation: int64(generation + 1), Path: "spec.x"}
		for range 2 {
			got, err := e.Evaluate(t.Context(), field, definition(t, text+"{{ x }}"), Variables{"x": int64(1)}, noPVC)
			if err != nil || got != text+"1" {
				t.Errorf("generation %d: got %v, %v", generation, got, err)
			}
		}
	}
	if n := len(e.programs.entries); n != 1 {
		t.Errorf("%d generations are remembered", n)
	}
}

func TestEvaluator_ServesManyAtOnce(t *testing.T) {
	e := NewEvaluator(DefaultLimits())
	in := definition(t, []any{"{{ modes.pop() }}-{{ n }}", "{% set yaml = true %}[{{ n }}, {{ modes | length }}]"})
	modes := []any{"a", "b"}
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			field := Field{Object: "u", Generation: int64(i % 3), Path: "spec.x"}
			got, err := e.Evaluate(t.Context(), field, in, Variables{"n": int64(i), "modes": modes}, noPVC)
			if want := fmt.Sprintf("[b-%d [%d 2]]", i, i); err != nil || fmt.Sprint(got) != want {
				t.Errorf("got %v, %v, want %s", got, err, want)
			}
		})
	}
	group.Wait()
}

// The constants of a field's templates are cached with them. Their size is limited, however much the templates ask for.
func TestEvaluator_RemembersFewConstants(t *testing.T) {
	const small = 8 << 20
	for name, source := range map[string]string{"large ones": "{{ 'a' * 1000000 }}", "many": "{{ 'a' * 4000 }}"} {
		t.Run(name, func(t *testing.T) {
			value := make([]any, 5000)
			for i := range value {
				value[i] = source
			}
			program, err := Compile(NewEnvironment(DefaultLimits()), DefaultLimits(), "spec.x", value)
			if err != nil {
				t.Fatal(err)
			}
			if program.constants > small {
				t.Errorf("%d bytes of constants", program.constants)
			}
		})
	}
}

// If a claim is looked up again, the result is the same value, without another request.
func TestEvaluate_LooksAClaimUpOnce(t *testing.T) {
	claim := map[string]any{}
	for i := range 20000 {
		claim[fmt.Sprint(i)] = "x"
	}
	looked := 0
	getPVC := func(context.Context, string, string) (map[string]any, error) {
		looked++
		return claim, nil
	}
	e := NewEvaluator(DefaultLimits())
	source := "{% for i in range(9999) %}{% set x = get_pvc('a', 'b').metadata %}{% endfor %}{{ get_pvc('a', 'b')['7'] }}"
	got, err := e.Evaluate(t.Context(), Field{Path: "spec.x"}, definition(t, source), Variables{}, getPVC)
	if err != nil || got != "x" || looked != 1 {
		t.Errorf("got %v, %v after %d looks", got, err, looked)
	}
}
