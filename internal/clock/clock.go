// Package clock has the time of the cluster, which is that of its API server.
//
// PaV compares the current time with times that other processes wrote: when the API server created a pod, or when
// another agent recorded a failure. If the clock of a machine were ten minutes ahead, no pod would seem to start in
// time. Each answer of the API server has a Date, by which an agent's Clock is corrected.
//
// It never sets the machine's clock, and never sends a request.
package clock

import (
	"net/http"
	"sync"
	"time"
)

// Clock has the time of the cluster. It runs evenly when the machine's clock is set. After the machine was suspended,
// it is right again with the next answer of the API server.
type Clock struct {
	local func() time.Time
	began time.Time

	mu         sync.Mutex
	correction time.Duration
}

// New returns a Clock of a process that starts now. Local is the process's own clock, time.Now except in tests; the
// Clock uses it until the API server has answered.
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

// Heard corrects the clock as little as the answer of the API server allows. Date is when it answered, in whole
// seconds, and took is the time from the request until now.
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

// Transport corrects the clock by the answers to all requests through a transport. It is for rest.Config.Wrap.
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

// WrappedRoundTripper returns the transport below, which client-go needs to close connections and to log.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.through }
