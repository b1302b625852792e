package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// settings are the inputs of a run besides its seed.
type settings struct {
	// steps is the number of steps with people and disturbances.
	steps int

	// without lists the kinds of trouble that do not happen.
	without []string

	// broken is a driver whose pods never start; empty for none. Classes are the classes of the claims; empty for a
	// random choice.
	broken  string
	classes []string

	// copies says that the world has copies, whatever its seed.
	copies bool
}

// optional lists the kinds of trouble that a run can do without.
var optional = []string{"refused", "cut", "killed", "hangs", "slow", "fails", "dies", "late", "clocks", "disturbances", "administrators", "copies"}

func (s settings) has(what string) bool { return !slices.Contains(s.without, what) }

// perMille returns a rate in thousandths, or 0 if this kind of trouble does not happen.
func (s settings) perMille(what string, often int) int {
	if !s.has(what) {
		return 0
	}
	return often
}

// command returns the command that repeats a run.
func (s settings) command(seed uint64) string {
	text := fmt.Sprintf(`make simulate ARGS="-run TestSimulation -seed %d -seeds 1 -steps %d -history`, seed, s.steps)
	if len(s.without) > 0 {
		text += " -without " + strings.Join(s.without, ",")
	}
	if s.copies {
		text += " -copies"
	}
	return text + `"`
}

// shrink looks for a shorter run of the same seed, with fewer kinds of trouble, that fails in the same way. It returns
// the settings and the failure of that run.
func shrink(t *testing.T, seed uint64, s settings, failure error) (settings, error) {
	t.Helper()
	fails := func(tried settings) error {
		var err error
		synctest.Test(t, func(t *testing.T) { _, err = run(t.Context(), seed, tried) })
		if err == nil || likeness(err) != likeness(failure) {
			return nil
		}
		return err
	}
	for _, what := range optional {
		tried := s
		tried.without = append(slices.Clone(s.without), what)
		if err := fails(tried); err != nil {
			s, failure = tried, err
		}
	}
	for part := s.steps / 2; part > 0; part /= 2 {
		tried := s
		tried.steps = s.steps - part
		if err := fails(tried); err != nil {
			s, failure = tried, err
		}
	}
	return s, failure
}

// likeness returns the part that similar failures have in common: the number of the invariant, or the first two words.
func likeness(err error) string {
	words := strings.Fields(err.Error())
	return strings.Join(words[:min(len(words), 2)], " ")
}

// simulate runs one seed as a subtest. It shrinks a run that fails.
func simulate(t *testing.T, seed uint64, s settings) (o outcome) {
	t.Helper()
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		var err error
		synctest.Test(t, func(t *testing.T) { o, err = run(t.Context(), seed, s) })
		if err == nil {
			return
		}
		t.Errorf("seed %d: %v", seed, err)
		shorter, failure := shrink(t, seed, s, err)
		t.Logf("shorter: %v\n%s", failure, shorter.command(seed))
	})
	return o
}
