package csi

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/albertofaria/pav/internal/observability"
)

// driver is a driver that is served: its socket, and what goes through it.
type driver struct {
	name     string
	services atomic.Pointer[Services] // never nil
	listener *net.UnixListener

	mu      sync.Mutex
	conns   map[*conn]struct{}
	calls   int
	removal *removal // nil while the driver is served

	registration registration // guarded by the lock of the Registry
}

// removal has the events that the removal of a driver waits for.
type removal struct {
	noCalls, noConns chan struct{} // closed when the last one has ended
}

// conn is a connection to a driver's socket.
type conn struct {
	*net.UnixConn
	driver *driver
}

// Close implements net.Conn. The server closes every connection that it was given.
func (c *conn) Close() error {
	c.driver.forget(c)
	return c.UnixConn.Close()
}

// acceptDelay is the time between attempts to accept a connection. They fail while the agent has no descriptor left.
const acceptDelay = 100 * time.Millisecond

// serve passes the connections of the driver's socket to the server, until either of them is closed.
func (d *driver) serve(server *sockets, log logr.Logger) {
	for {
		c, err := d.accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			log.Error(err, "a connection cannot be accepted", observability.Provisioner, d.name)
			await(server.closed, acceptDelay)
		case !server.pass(c):
			_ = c.Close() // The agent ends.
			return
		}
	}
}

func (d *driver) accept() (*conn, error) {
	accepted, err := d.listener.AcceptUnix()
	if err != nil {
		return nil, err
	}
	c := &conn{UnixConn: accepted, driver: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.removal != nil {
		return nil, errors.Join(net.ErrClosed, accepted.Close())
	}
	if d.conns == nil {
		d.conns = map[*conn]struct{}{}
	}
	d.conns[c] = struct{}{}
	return c, nil
}

// close closes the driver's socket.
func (d *driver) close() error {
	if err := d.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing a socket: %w", err)
	}
	return nil
}

func (d *driver) forget(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, open := d.conns[c]; !open {
		return
	}
	delete(d.conns, c)
	if len(d.conns) > 0 {
		return
	}
	d.conns = nil
	if d.removal != nil {
		close(d.removal.noConns)
	}
}

// begin notes that a call begins. It returns false if the driver is being removed.
func (d *driver) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.removal != nil {
		return false
	}
	d.calls++
	return true
}

// end notes that a call has ended.
func (d *driver) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	if d.removal != nil && d.calls == 0 {
		close(d.removal.noCalls)
	}
}

// callTimeout is how long calls of a driver that is being removed may take to end.
const callTimeout = 15 * time.Second

// hangUpTimeout is how long the clients of a driver that is being removed may take to read the answers to their last
// calls, and to close their connections. Kubelet has a connection for each call.
const hangUpTimeout = time.Second

// remove refuses new connections and new calls. It waits until calls in progress have ended, or for a timeout. Then it
// closes all connections, which cancels the calls that have not ended.
func (d *driver) remove(timeout time.Duration) error {
	removing := &removal{noCalls: make(chan struct{}), noConns: make(chan struct{})}
	err := d.close()
	d.mu.Lock()
	d.removal = removing
	if d.calls == 0 {
		close(removing.noCalls)
	}
	if len(d.conns) == 0 {
		close(removing.noConns)
	}
	d.mu.Unlock()

	await(removing.noCalls, timeout)
	await(removing.noConns, hangUpTimeout)
	d.mu.Lock()
	left := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		left = append(left, c)
	}
	d.mu.Unlock()
	for _, c := range left {
		// The server may have closed it since.
		if closing := c.Close(); !errors.Is(closing, net.ErrClosed) {
			err = errors.Join(err, closing)
		}
	}
	return err
}

func await(event <-chan struct{}, timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-event:
	case <-timer.C:
	}
}

// listenOn starts to serve at path atomically, even if the socket of an earlier agent is there: the driver never
// disappears for kubelet when the agent is restarted.
func listenOn(path string) (*net.UnixListener, error) {
	temporary := temporaryPath(path)
	if err := removeFile(temporary); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// The sockets outlive the agent, so that calls fail as unavailable until the next agent serves them.
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(temporary, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close(), removeFile(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return nil, errors.Join(err, listener.Close(), removeFile(temporary))
	}
	return listener, nil
}

// temporaryPath is the path of a file until it is complete. Kubelet ignores names that begin with a dot.
func temporaryPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a socket: %w", err)
	}
	return nil
}
