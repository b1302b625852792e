package agents

import (
	"github.com/go-logr/logr"

	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/test/simulation/world"
)

// decisions counts the rules of the agents' decisions, and writes them to the history. It reads them from the agents' logs.
type decisions struct{ world *world.World }

// newLog returns the logger of an agent. It ignores everything but decisions.
func newLog(w *world.World) logr.Logger { return logr.New(decisions{w}) }

// Init implements logr.LogSink.
func (decisions) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (decisions) Enabled(level int) bool { return level == 2 }

// Info implements logr.LogSink.
func (d decisions) Info(_ int, _ string, keysAndValues ...any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if rule, ok := keysAndValues[i+1].(string); ok && keysAndValues[i] == observability.Rule {
			d.world.Counts["decided as: "+rule]++
			d.world.Notef("decided as: %s", rule)
		}
	}
}

// Error implements logr.LogSink.
func (decisions) Error(error, string, ...any) {}

// WithValues implements logr.LogSink.
func (d decisions) WithValues(...any) logr.LogSink { return d }

// WithName implements logr.LogSink.
func (d decisions) WithName(string) logr.LogSink { return d }
