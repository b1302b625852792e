package csi

import (
	"net"
	"sync"
)

// sockets is the listener of the gRPC server: it has the connections that the sockets of all drivers accept. If the
// server listened on each socket itself, a driver would cost 8 KiB more.
type sockets struct {
	accepted chan *conn
	closing  sync.Once
	closed   chan struct{}
}

func newSockets() *sockets {
	return &sockets{accepted: make(chan *conn), closed: make(chan struct{})}
}

// pass passes a connection to the server. It returns false if the server has ended.
func (s *sockets) pass(c *conn) bool {
	select {
	case s.accepted <- c:
		return true
	case <-s.closed:
		return false
	}
}

// ended reports whether the server has ended.
func (s *sockets) ended() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Accept implements net.Listener.
func (s *sockets) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *sockets) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *sockets) Addr() net.Addr {
	return &net.UnixAddr{Name: "the sockets of all drivers", Net: "unix"}
}
