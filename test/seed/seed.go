// Package seed makes the random choices of tests repeatable.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that sets the seed of random choices.
const Variable = "PAV_SEED"

// Of returns the seed of an earlier run, if the environment variable sets one, or a new one. The test logs it.
func Of(t *testing.T) uint64 {
	t.Helper()
	value := rand.Uint64()
	if text := os.Getenv(Variable); text != "" {
		var err error
		if value, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(Variable+":", err)
		}
	}
	t.Logf("to choose the same again: %s=%d", Variable, value)
	return value
}

// Random returns a source of random choices for the seed of a test.
func Random(t *testing.T) *rand.Rand {
	t.Helper()
	return Stream(Of(t), 0)
}

// Stream returns one of several sources of random choices for a seed.
func Stream(seed, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, number)) //nolint:gosec // it must be repeatable
}
