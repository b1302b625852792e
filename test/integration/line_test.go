package integration

import (
	"testing"

	"github.com/albertofaria/pav/test/agent"
)

// missing returns the faults of a line that never struck.
func missing(faults agent.Faults, strikes agent.Strikes) (never []string) {
	for _, fault := range []struct {
		name   string
		struck int
		wanted bool
	}{
		{"a request failed", strikes.Failed, faults.Failing > 0},
		{"a request was refused", strikes.Refused, faults.Refusing > 0},
		{"a watch was late", strikes.Late, len(faults.Late) > 0},
		{"an event was doubled", strikes.Doubled, faults.Shaken},
		{"an event was overtaken", strikes.Overtaken, faults.Shaken},
		{"an event was lost", strikes.Lost, faults.Shaken},
	} {
		if fault.wanted && fault.struck == 0 {
			never = append(never, fault.name)
		}
	}
	return never
}

// wantStruck fails the test unless each of a line's faults struck.
func wantStruck(t *testing.T, faults agent.Faults, strikes agent.Strikes) {
	t.Helper()
	t.Logf("how often the faults struck: %+v", strikes)
	for _, never := range missing(faults, strikes) {
		t.Errorf("it never happened that %s", never)
	}
}

// unreliable has the unreliable connections that an agent must cope with.
var unreliable = map[string]agent.Faults{
	"a fifth of the requests fail, half of them after they took effect": {Failing: 5},
	"a fifth of the requests are refused for now":                       {Refusing: 5},
	"events arrive twice, overtake each other, and are lost":            {Shaken: true},
}

// The connection of the controller agent is unreliable during the whole lives of volumes: every pod still runs exactly once.
func TestUnreliableLine(t *testing.T) {
	c := start(t)
	for name, faults := range unreliable {
		t.Run(name, func(t *testing.T) {
			line := &agent.Line{Faults: faults}
			a := agent.Launch(t, c.agent, agent.Options(namespace), line)
			t.Cleanup(func() { a.Stop(t); checkNothingLeft(t, c) })
			volumes := 4
			if long() {
				volumes = 50
			}
			comeAndGo(t, c, "unreliable", volumes)
			wantStruck(t, faults, line.Strikes())
		})
	}
}
