package csi

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/observability"
)

// acceptor accepts the connections to the sockets of all drivers. It waits for them with one goroutine, by epoll(7): the
// stack of a goroutine for each socket would be half of what a driver costs.
type acceptor struct {
	log   logr.Logger
	epoll *os.File
	conn  syscall.RawConn // of epoll

	mu      sync.Mutex
	drivers map[int]*driver // by the descriptor of the socket
}

func newAcceptor(log logr.Logger) (*acceptor, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating an epoll descriptor: %w", err)
	}
	// Go waits for a descriptor without a thread of its own only if it does not block.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an epoll descriptor: %w", err), unix.Close(fd))
	}
	epoll := os.NewFile(uintptr(fd), "epoll")
	conn, err := epoll.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an epoll descriptor: %w", err), epoll.Close())
	}
	return &acceptor{log: log, epoll: epoll, conn: conn, drivers: map[int]*driver{}}, nil
}

// add begins to accept connections for a driver.
func (a *acceptor) add(socket int, d *driver) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drivers[socket] = d
	//nolint:gosec // Descriptors have 31 bits.
	err := a.control(unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)})
	if err != nil {
		delete(a.drivers, socket)
	}
	return err
}

// drop ends what add began. The socket is still open.
func (a *acceptor) drop(socket int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.drivers, socket)
	return a.control(unix.EPOLL_CTL_DEL, socket, nil)
}

func (a *acceptor) control(operation, socket int, event *unix.EpollEvent) error {
	var err error
	if ended := a.conn.Control(func(epoll uintptr) { err = unix.EpollCtl(int(epoll), operation, socket, event) }); ended != nil {
		err = ended
	}
	if err != nil {
		return fmt.Errorf("following a socket: %w", err)
	}
	return nil
}

// acceptDelay is the time between attempts to accept a connection. They fail while the agent has no descriptor left.
const acceptDelay = 100 * time.Millisecond

// run passes connections to the server, until the server is closed, and then either the acceptor is closed or a connection comes.
func (a *acceptor) run(server *sockets) {
	for {
		ready, err := a.wait()
		switch {
		case err != nil && server.ended():
			return
		case err != nil:
			a.log.Error(err, "connections cannot be accepted")
			await(server.closed, acceptDelay)
		}
		for _, d := range ready {
			c, err := d.accept()
			switch {
			case err != nil && server.ended():
				return // The connections that still wait are not served.
			case err != nil:
				a.log.Error(err, "a connection cannot be accepted", observability.Provisioner, d.name)
				await(server.closed, acceptDelay)
			case c != nil && !server.pass(c):
				_ = c.Close() // The agent ends.
				return
			}
		}
	}
}

// wait returns drivers with connections that can be accepted, some of them if there are many. It fails if the acceptor is
// closed.
func (a *acceptor) wait() ([]*driver, error) {
	var events [64]unix.EpollEvent
	var n int
	var err error
	ended := a.conn.Read(func(epoll uintptr) bool {
		n, err = unix.EpollWait(int(epoll), events[:], 0)
		return n != 0 // It is -1 if there is an error.
	})
	switch {
	case ended != nil:
		return nil, ended
	case errors.Is(err, unix.EINTR):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("waiting for connections: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var ready []*driver
	for _, event := range events[:n] {
		if d := a.drivers[int(event.Fd)]; d != nil {
			ready = append(ready, d)
		}
	}
	return ready, nil
}

// close ends run once the server is closed.
func (a *acceptor) close() error {
	if err := a.epoll.Close(); err != nil {
		return fmt.Errorf("closing an epoll descriptor: %w", err)
	}
	return nil
}
