package csi

import (
	"testing"

	"github.com/go-logr/logr/testr"
	"golang.org/x/sys/unix"
)

// An agent that ends may have no descriptor left. It must not try to accept a connection again and again until its sockets are closed.
func TestAcceptor_EndsWithTheServer_IfNoConnectionCanBeAccepted(t *testing.T) {
	a, err := newAcceptor(testr.New(t))
	must(t, err)
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	d := &driver{name: "driver", acceptor: a, socket: socket}
	must(t, a.add(socket, d)) // It does not listen, so that the kernel reports it, and accepting from it fails.
	if _, err := d.accept(); err == nil {
		t.Error("a socket that does not listen has accepted a connection")
	}
	server := newSockets()
	must(t, server.Close())
	a.run(server)
	must(t, d.close())
	must(t, a.close())
}
