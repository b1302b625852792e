package integration

import (
	"testing"

	"github.com/albertofaria/pav/test/agent"
)

// run starts an agent for the duration of a test.
func run(t *testing.T, c *cluster) *agent.Agent {
	t.Helper()
	a := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() {
		a.Stop(t)
		checkNothingLeft(t, c)
	})
	return a
}
