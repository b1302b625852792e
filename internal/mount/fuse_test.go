package mount

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// deadServer is a FUSE file system in which each name is an empty directory. It stops answering on command, like that
// of a crashed staging pod.
type deadServer struct {
	device *os.File
	silent atomic.Bool
	// failure is the error that answers every request, if it is not zero.
	failure atomic.Uint32
	ended   chan struct{}
}

// Operations of the FUSE protocol that the server handles.
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseStatfs      = 17
	fuseInit        = 26
	fuseOpendir     = 27
	fuseReleasedir  = 29
	fuseBatchForget = 42
)

// serveFUSE mounts a file system at path and serves it until it is closed.
func serveFUSE(t *testing.T, path string) *deadServer {
	t.Helper()
	return serveFUSEFor(t, path, "user_id=0,group_id=0,allow_other")
}

// serveFUSEFor is serveFUSE with mount options that define who may use the file system.
func serveFUSEFor(t *testing.T, path, users string) *deadServer {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	must(t, err)
	options := fmt.Sprintf("fd=%d,rootmode=40755,%s", fd, users)
	err = unix.Mount("dead", path, "fuse", 0, options)
	// The file is created after the mount, as the poller gets no events from a device that is not mounted.
	s := &deadServer{device: os.NewFile(uintptr(fd), "/dev/fuse"), ended: make(chan struct{})}
	must(t, err)
	go s.serve()
	t.Cleanup(s.close)
	return s
}

// close aborts the connection: everyone who waits for an answer gets an error.
func (s *deadServer) close() {
	_ = s.device.Close()
	<-s.ended
}

func (s *deadServer) serve() {
	defer close(s.ended)
	request := make([]byte, 1<<17)
	for {
		n, err := s.device.Read(request)
		if err != nil {
			return
		}
		if n < 40 || s.silent.Load() {
			continue
		}
		if answer := fuseAnswer(request[:n], unix.Errno(s.failure.Load())); answer != nil {
			if _, err := s.device.Write(answer); err != nil {
				return
			}
		}
	}
}

func fuseAnswer(request []byte, failure unix.Errno) []byte {
	order := binary.LittleEndian
	var body []byte
	switch order.Uint32(request[4:]) {
	case fuseInit:
		body = make([]byte, 64)
		order.PutUint32(body, 7)
		order.PutUint32(body[4:], 31)
		order.PutUint32(body[20:], 4096) // max_write
	case fuseLookup:
		// Nothing may be cached, so that every later lookup makes a request.
		body = make([]byte, 40, 128)
		order.PutUint64(body, 2)
		body = append(body, fuseDirectory(2)...)
	case fuseGetattr:
		body = append(make([]byte, 16), fuseDirectory(order.Uint64(request[16:]))...)
	case fuseStatfs:
		body = make([]byte, 80)
		order.PutUint64(body, 100)      // blocks
		order.PutUint64(body[8:], 40)   // free
		order.PutUint64(body[16:], 30)  // available
		order.PutUint32(body[40:], 512) // bsize
		order.PutUint32(body[48:], 1<<10)
	case fuseOpendir:
		body = make([]byte, 16)
	case fuseReleasedir:
	case fuseForget, fuseBatchForget:
		return nil
	default:
		failure = unix.ENOSYS
	}
	if failure != 0 && order.Uint32(request[4:]) != fuseInit {
		body = nil
	} else {
		failure = 0
	}
	header := make([]byte, 16)
	order.PutUint32(header, uint32(len(header)+len(body)))
	order.PutUint32(header[4:], uint32(-int32(failure)))
	copy(header[8:], request[8:16])
	return append(header, body...)
}

// fuseDirectory returns the attributes of a directory.
func fuseDirectory(inode uint64) []byte {
	attributes := make([]byte, 88)
	binary.LittleEndian.PutUint64(attributes, inode)
	binary.LittleEndian.PutUint32(attributes[60:], unix.S_IFDIR|0o755)
	binary.LittleEndian.PutUint32(attributes[64:], 2)
	return attributes
}
