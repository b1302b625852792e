// Package clock tells the time of the cluster, which is its API server's.
//
// PaV compares the present with times that others wrote: when the API server created a pod, when another
// agent recorded a failure. By the clock of a machine that is ten minutes ahead, no pod would start in time.
// Each answer of the API server has a Date, by which an agent's clock is corrected.
//
// It never sets the machine's clock, and asks nobody for the time.
package clock

import (
	"net/http"
	"sync"
	"time"
)

// Clock tells the time of the cluster. It goes on evenly when the machine's clock is set, and is at once right
// again after the machine was suspended, with the next answer of the API server.
type Clock struct {
	local func() time.Time
	began time.Time

	mu         sync.Mutex
	correction time.Duration
}

// New returns a Clock of a process that begins now. Local is the process's own clock, time.Now but in tests; until
// the API server has answered, the Clock tells what that says.
func New(local func() time.Time) *Clock {
	return &Clock{local: local, began: local()}
}

// Now returns the time of the cluster.
func (c *Clock) Now() time.Time {
	now := c.evenly()
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Add(c.correction)
}

// evenly returns the local time as if the machine's clock had not been set since the beginning.
func (c *Clock) evenly() time.Time {
	return c.began.Round(0).Add(c.local().Sub(c.began)) // the difference is monotonic
}

// Heard corrects the clock by as little as what the API server said allows. Date is when it answered, in whole
// seconds, and took how long it took from the request to here.
func (c *Clock) Heard(date time.Time, took time.Duration) {
	earliest, latest := date, date.Add(time.Second+took)
	now := c.evenly()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch said := now.Add(c.correction); {
	case said.Before(earliest):
		c.correction = earliest.Sub(now)
	case said.After(latest):
		c.correction = latest.Sub(now)
	}
}

// Transport has the clock hear the answers to all requests that go through a transport. It is for
// rest.Config.Wrap, of a configuration for the API server.
func (c *Clock) Transport(through http.RoundTripper) http.RoundTripper {
	return transport{clock: c, through: through}
}

type transport struct {
	clock   *Clock
	through http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := t.clock.local()
	response, err := t.through.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, unreadable := http.ParseTime(response.Header.Get("Date")); unreadable == nil {
		t.clock.Heard(date, t.clock.local().Sub(asked))
	}
	return response, nil
}

// WrappedRoundTripper has client-go find what is below, as it does to end connections and to log.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.through }
