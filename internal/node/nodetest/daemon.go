package nodetest

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Daemon is a FUSE file system with an empty root directory, which hangs or dies on command.
type Daemon struct {
	device *os.File
	gate   sync.Mutex    // held while it does not answer
	Ended  chan struct{} // closed when the daemon has died, and the kernel answers in its place
	once   sync.Once
}

// ServeFUSE mounts a file system at path and serves it until it dies.
func ServeFUSE(t *testing.T, path string) *Daemon {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	Must(t, err)
	Must(t, unix.Mount("test", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)))
	// The file is created after the mount, as the poller gets no events from a device that is not mounted.
	d := &Daemon{device: os.NewFile(uintptr(fd), "/dev/fuse"), Ended: make(chan struct{})}
	go d.serve()
	t.Cleanup(d.Die)
	return d
}

// Hang makes requests wait until the returned function is called.
func (d *Daemon) Hang() (goOn func()) {
	d.gate.Lock()
	return d.gate.Unlock
}

// Die ends the daemon. From then on, the kernel answers in its place. The daemon must not hang.
func (d *Daemon) Die() {
	d.once.Do(func() { _ = d.device.Close() })
	<-d.Ended
}

func (d *Daemon) serve() {
	defer close(d.Ended)
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

// fuseAnswer answers requests for the attributes of the root, and refuses the others.
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
