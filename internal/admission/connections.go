package admission

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// boundedListener limits how many connections are open, in total and from one address. When all slots are in use, the
// address with the most connections loses one for a new connection, so that no client can block others.
type boundedListener struct {
	net.Listener
	all, each int

	mu    sync.Mutex
	count int
	open  map[string][]*boundedConnection // by the client's address, the oldest first
	last  uint64                          // the number of the newest connection
}

func newBoundedListener(listener net.Listener, all, each int) *boundedListener {
	return &boundedListener{Listener: listener, all: all, each: each, open: map[string][]*boundedConnection{}}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client, _, err := net.SplitHostPort(accepted.RemoteAddr().String())
		if err != nil {
			client = accepted.RemoteAddr().String()
		}
		connection := &boundedConnection{Conn: accepted, listener: l, client: client}
		victim, taken := l.take(connection)
		if victim != nil {
			_ = victim.Conn.Close() // Its server ends the request then.
		}
		if taken {
			return connection, nil
		}
		_ = accepted.Close() // The client sees that the connection is closed.
	}
}

// take gives a connection a slot, if possible, and returns the connection that it replaces, if any.
func (l *boundedListener) take(connection *boundedConnection) (victim *boundedConnection, taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= l.all || len(l.open[connection.client]) >= l.each {
		if victim = l.victim(connection.client); victim == nil {
			return nil, false
		}
		l.remove(victim)
	}
	l.last++
	connection.number = l.last
	l.count++
	l.open[connection.client] = append(l.open[connection.client], connection)
	return victim, true
}

// victim returns the connection that is closed for a new one of a client, or nil. All slots, or all of the client's,
// are in use.
func (l *boundedListener) victim(client string) *boundedConnection {
	own, most := len(l.open[client]), 0
	for _, connections := range l.open {
		most = max(most, len(connections))
	}
	// Two addresses whose numbers differ by one would take the slot from each other endlessly.
	if own < l.each && (most > own+1 || own == 0) {
		var found *boundedConnection
		for _, connections := range l.open {
			if len(connections) == most {
				if oldest := leastNeeded(connections); found == nil || oldest.neededLessThan(found) {
					found = oldest
				}
			}
		}
		return found
	}
	// The client itself has the most. Its connections in use are as important as the new one.
	if own > 0 {
		if oldest := leastNeeded(l.open[client]); oldest.idle {
			return oldest
		}
	}
	return nil
}

// leastNeeded returns the oldest idle one of a client's connections, or the oldest if none is idle.
func leastNeeded(connections []*boundedConnection) *boundedConnection {
	if i := slices.IndexFunc(connections, func(c *boundedConnection) bool { return c.idle }); i >= 0 {
		return connections[i]
	}
	return connections[0]
}

// remove frees the slot of a connection, unless that was done before.
func (l *boundedListener) remove(connection *boundedConnection) {
	connections := l.open[connection.client]
	i := slices.Index(connections, connection)
	if i < 0 {
		return
	}
	l.count--
	if connections = slices.Delete(connections, i, i+1); len(connections) > 0 {
		l.open[connection.client] = connections
	} else {
		delete(l.open, connection.client)
	}
}

// boundedConnection is a connection that has, or had, a slot. The listener's lock guards its fields.
type boundedConnection struct {
	net.Conn
	listener *boundedListener
	client   string
	number   uint64 // increases with each accepted connection
	idle     bool   // it waits for the next request
}

func (c *boundedConnection) neededLessThan(other *boundedConnection) bool {
	if c.idle != other.idle {
		return c.idle
	}
	return c.number < other.number
}

// Close implements net.Conn.
func (c *boundedConnection) Close() error {
	defer func() {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.listener.remove(c)
	}()
	return c.Conn.Close()
}

// noteIdle is an http.Server's ConnState.
func noteIdle(connection net.Conn, state http.ConnState) {
	if secured, ok := connection.(*tls.Conn); ok {
		connection = secured.NetConn()
	}
	if bounded, ok := connection.(*boundedConnection); ok {
		bounded.listener.mu.Lock()
		defer bounded.listener.mu.Unlock()
		bounded.idle = state == http.StateIdle
	}
}
