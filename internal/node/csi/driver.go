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

	"golang.org/x/sys/unix"
)

// driver is a driver that is served: its socket, and what goes through it.
type driver struct {
	name     string
	services atomic.Pointer[Services] // never nil
	acceptor *acceptor

	mu      sync.Mutex
	socket  int // the descriptor that listens, or closedSocket
	conns   map[*conn]struct{}
	calls   int
	removal *removal // nil while the driver is served

	registration registration // guarded by the lock of the Registry
}

// closedSocket is the descriptor of a closed socket.
const closedSocket = -1

// removal has the events that the removal of a driver waits for.
type removal struct {
	noCalls, noConns chan struct{} // closed when the last one has ended
}

// conn is a connection to a driver's socket.
type conn struct {
	net.Conn
	driver *driver
}

// Close implements net.Conn. The server closes every connection that it was given.
func (c *conn) Close() error {
	c.driver.forget(c)
	return c.Conn.Close()
}

// accept returns a connection that waits at the driver's socket, or nil if none waits, or the socket
// has been closed since.
func (d *driver) accept() (*conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.socket == closedSocket {
		return nil, nil //nolint:nilnil // Neither is there.
	}
	fd, _, err := unix.Accept4(d.socket, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		return nil, nil //nolint:nilnil // Neither is there.
	case err != nil:
		return nil, fmt.Errorf("accepting: %w", err)
	}
	file := os.NewFile(uintptr(fd), "connection")
	accepted, err := net.FileConn(file) // It duplicates the descriptor.
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, driver: d}
	if d.conns == nil {
		d.conns = map[*conn]struct{}{}
	}
	d.conns[c] = struct{}{}
	return c, nil
}

// close closes the driver's socket.
func (d *driver) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.socket == closedSocket {
		return nil
	}
	err := d.acceptor.drop(d.socket)
	if closing := unix.Close(d.socket); closing != nil {
		err = errors.Join(err, fmt.Errorf("closing a socket: %w", closing))
	}
	d.socket = closedSocket
	return err
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

// backlog is how many connections to a socket may wait until they are accepted. Linux takes the lower one of this and
// net.core.somaxconn.
const backlog = 4096

// listenOn starts to serve at path atomically, even if the socket of an earlier agent is there: the driver never
// disappears for kubelet when the agent is restarted. It returns a descriptor, which does not block. The socket's file
// outlives it, so that calls fail as unavailable until the next agent serves them.
func listenOn(path string) (int, error) {
	temporary := temporaryPath(path)
	if err := removeFile(temporary); err != nil {
		return closedSocket, err
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return closedSocket, fmt.Errorf("creating a socket: %w", err)
	}
	if err := unix.Bind(socket, &unix.SockaddrUnix{Name: temporary}); err != nil {
		return closedSocket, errors.Join(fmt.Errorf("binding a socket to %s: %w", temporary, err), unix.Close(socket))
	}
	if err := appear(socket, temporary, path); err != nil {
		return closedSocket, errors.Join(err, unix.Close(socket), removeFile(temporary))
	}
	return socket, nil
}

// appear lets a socket listen, and then gives it its path.
func appear(socket int, temporary, path string) error {
	if err := os.Chmod(temporary, 0o600); err != nil {
		return err
	}
	if err := unix.Listen(socket, backlog); err != nil {
		return fmt.Errorf("listening on %s: %w", temporary, err)
	}
	return os.Rename(temporary, path)
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
