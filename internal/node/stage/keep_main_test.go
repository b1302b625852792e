package stage

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

// daemon is a FUSE file system that has nothing but an empty root, and hangs or dies on command.
type daemon struct {
	device *os.File
	gate   sync.Mutex // held while it does not answer
	ended  chan struct{}
	once   sync.Once
}

// serveFUSE mounts a file system at path and serves it until it dies.
func serveFUSE(t *testing.T, path string) *daemon {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	must(t, err)
	must(t, unix.Mount("test", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)))
	// Only now, for the poller gets no events from a device that is not mounted.
	d := &daemon{device: os.NewFile(uintptr(fd), "/dev/fuse"), ended: make(chan struct{})}
	go d.serve()
	t.Cleanup(d.die)
	return d
}

// hang makes whoever asks for something wait, until the returned function is called.
func (d *daemon) hang() (goOn func()) {
	d.gate.Lock()
	return d.gate.Unlock
}

// die ends the daemon: the kernel answers in its place from now on. It must not be hanging.
func (d *daemon) die() {
	d.once.Do(func() { _ = d.device.Close() })
	<-d.ended
}

func (d *daemon) serve() {
	defer close(d.ended)
	request := make([]byte, 1<<17)
	for {
		n, err := d.device.Read(request)
		if err != nil {
			return
		}
		d.gate.Lock()
		answer := fuseAnswer(request[:n])
		if answer != nil {
			_, err = d.device.Write(answer)
		}
		d.gate.Unlock()
		if err != nil {
			return
		}
	}
}

// fuseAnswer answers requests for the root's attributes, and refuses the others.
func fuseAnswer(request []byte) []byte {
	const getattr, initialize, forget, batchForget = 3, 26, 2, 42
	order := binary.LittleEndian
	var body []byte
	var failure int32
	switch order.Uint32(request[4:]) {
	case initialize:
		body = make([]byte, 64)
		order.PutUint32(body, 7)
		order.PutUint32(body[4:], 31)
		order.PutUint32(body[20:], 4096) // max_write
	case getattr:
		body = make([]byte, 16+88)
		order.PutUint64(body[16:], order.Uint64(request[16:]))
		order.PutUint32(body[16+60:], unix.S_IFDIR|0o755)
		order.PutUint32(body[16+64:], 2)
	case forget, batchForget:
		return nil
	default:
		failure = -int32(unix.ENOSYS)
	}
	header := make([]byte, 16)
	order.PutUint32(header, uint32(len(header)+len(body)))
	order.PutUint32(header[4:], uint32(failure))
	copy(header[8:], request[8:16])
	return append(header, body...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
