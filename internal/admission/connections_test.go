package admission

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// caller is a connection of a client, which uses it for several requests.
type caller struct {
	net.Conn
	reader *bufio.Reader
}

// call opens a connection from an address of this host, and makes a request on it.
func call(ctx context.Context, from, to string) (*caller, error) {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second},
		Config:    &tls.Config{InsecureSkipVerify: true},
	}
	connection, err := dialer.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	c := &caller{Conn: connection, reader: bufio.NewReader(connection)}
	if err := c.ask(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ask makes another request on the connection, and checks that it is answered.
func (c *caller) ask(ctx context.Context) error {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://pav/", http.NoBody)
	if err != nil {
		return err
	}
	if err := request.Write(c); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusTeapot {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return response.Body.Close()
}

// limitedServer runs a server that limits its connections, in total and from one address, and returns its address.
func limitedServer(t *testing.T, all, each int) string {
	t.Helper()
	certificate, _ := certified(t, x509.ExtKeyUsageServerAuth)
	address := freeAddress(t)
	s, err := newServer(address, "", func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil })
	if err != nil {
		t.Fatal(err)
	}
	s.all, s.each = all, each
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	<-s.started
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return address
}

// Clients that have as many connections as the limit allows do not block a client that has only one.
func TestServer_AtItsConnectionLimit_ServesANewAddress(t *testing.T) {
	const all, each = 12, 4
	to := limitedServer(t, all, each)
	flood := func(from string, must bool) {
		c, err := call(t.Context(), from, to)
		if err != nil {
			if must {
				t.Fatal(err)
			}
			return // It was refused.
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	flooders := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"}
	for _, from := range flooders {
		for range each {
			flood(from, true)
		}
	}
	one, err := call(t.Context(), "127.0.0.100", to)
	if err != nil {
		t.Fatalf("a new address is not served: %v", err)
	}
	defer func() { _ = one.Close() }()
	for round := range 5 {
		for _, from := range append(flooders, "127.0.0.5", "127.0.0.6") {
			flood(from, false)
		}
		if err := one.ask(t.Context()); err != nil {
			t.Fatalf("round %d: the connection of the address that has one is lost: %v", round, err)
		}
	}
}

// Idle connections of an API server that has ended do not block the next API server at the same address.
func TestServer_WithAllPlacesOfAnAddressIdle_ServesItsNextConnection(t *testing.T) {
	const each = 2
	to := limitedServer(t, 10, each)
	for i := range 5 * each {
		var c *caller
		// The server marks a connection as idle shortly after the client gets the answer: until then, the next
		// connection may be refused.
		for deadline := time.Now().Add(20 * time.Second); c == nil; {
			var err error
			if c, err = call(t.Context(), "127.0.0.2", to); err != nil && time.Now().After(deadline) {
				t.Fatalf("connection %d: %v", i, err)
			}
		}
		defer func() { _ = c.Close() }()
	}
}

func TestBoundedListener_ClosesWhatIsTooMuch_AndGivesPlacesBack(t *testing.T) {
	l := newBoundedListener(nil, 3, 2)
	var all []*boundedConnection
	for i, step := range []struct {
		client string
		taken  bool
		victim int // index in all, from 1; 0 means none
	}{{"a", true, 0}, {"a", true, 0}, {"a", false, 0}, {"b", true, 0}, {"b", false, 0}, {"c", true, 1}} {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		connection := &boundedConnection{Conn: here, listener: l, client: step.client}
		all = append(all, connection)
		victim, taken := l.take(connection)
		if taken != step.taken || (victim != nil) != (step.victim > 0) || victim != nil && victim != all[step.victim-1] {
			t.Errorf("step %d: client %s has a place: %t, of %v", i, step.client, taken, victim)
		}
	}
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	again := &boundedConnection{Conn: all[1].Conn, listener: l, client: "d"}
	if victim, taken := l.take(again); !taken || victim != nil {
		t.Error("a place that was given back is lost")
	}
	for range 2 { // A server closes all its connections, also those that are closed already.
		for _, connection := range append(all, again) {
			_ = connection.Close()
		}
	}
	if l.count != 0 || len(l.open) != 0 {
		t.Errorf("%d connections of %v are left", l.count, l.open)
	}
}

func TestBoundedListener_Victim(t *testing.T) {
	const each = 4
	tests := map[string]struct {
		open   string // the client of each connection, the oldest first; a capital letter if the connection is in use
		client string
		want   int // index in open, from 1; 0 means none
	}{
		"of the one that has most":                       {open: "b aaa", client: "c", want: 3},
		"an idle one first":                              {open: "b AAa", client: "c", want: 5},
		"else the oldest":                                {open: "b AAA", client: "c", want: 3},
		"of some that have most, the oldest idle one":    {open: "AA bB a b", client: "c", want: 4},
		"never of one that has as many as the new one":   {open: "bb Aa", client: "a", want: 5},
		"nor of one that would then have fewer":          {open: "bbb aA", client: "a", want: 5},
		"but of one that has more even then":             {open: "bbbb aA", client: "a", want: 1},
		"of the oldest where nobody has more than one":   {open: "abd", client: "c", want: 1},
		"of its own, where it has as many as it may":     {open: "Aaaa b", client: "a", want: 2},
		"none, where it uses all of those":               {open: "AAAA b", client: "a"},
		"none, where it has most of all and uses them":   {open: "AA b", client: "a"},
		"its own, where it has most of all, one is idle": {open: "AAa b", client: "a", want: 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newBoundedListener(nil, 0, each)
			for i, r := range test.open {
				if r == ' ' {
					continue
				}
				client := strings.ToLower(string(r))
				l.open[client] = append(l.open[client], &boundedConnection{client: client, number: uint64(i + 1), idle: client == string(r)}) //nolint:gosec // small
			}
			got := 0
			if victim := l.victim(test.client); victim != nil {
				got = int(victim.number) //nolint:gosec // small
			}
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
