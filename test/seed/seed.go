// Package seed makes the random choices of tests repeatable.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable names the seed that random choices follow from.
const Variable = "PAV_SEED"

// Of returns the seed of an earlier run, if the environment names one, or a new one. The test says which.
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

// Random returns random choices that follow from a test's seed.
func Random(t *testing.T) *rand.Rand {
	t.Helper()
	return Stream(Of(t), 0)
}

// Stream returns one of several sources of choices that follow from a seed.
func Stream(seed, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, number)) //nolint:gosec // It is to be repeatable.
}
