package csi

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// blocking is an Identity service whose calls end when the test releases them, or when they are canceled.
type blocking struct {
	csi.UnimplementedIdentityServer
	called, release, canceled chan struct{}
}

func newBlocking() *blocking {
	return &blocking{called: make(chan struct{}, 1), release: make(chan struct{}), canceled: make(chan struct{})}
}

// GetPluginInfo implements csi.IdentityServer.
func (b *blocking) GetPluginInfo(ctx context.Context, _ *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	b.called <- struct{}{}
	select {
	case <-b.release:
		return &csi.GetPluginInfoResponse{Name: "blocking"}, nil
	case <-ctx.Done():
		close(b.canceled)
		return nil, ctx.Err()
	}
}

// begun registers a driver whose calls block, and begins a call. The result of the call is sent to the channel. The
// connection stays open until the test ends.
func (b *blocking) begun(t *testing.T, r *Registry, name string) (*grpc.ClientConn, <-chan error) {
	t.Helper()
	register(t, r, name, Services{Identity: b, Node: csi.UnimplementedNodeServer{}})
	conn, err := grpc.NewClient("unix:"+r.socket(name), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ended := make(chan error, 1)
	go func() {
		_, err := csi.NewIdentityClient(conn).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
		ended <- err
	}()
	happens(t, "the call begins", b.called)
	return conn, ended
}

// happens returns what is sent to a channel, or the zero value if it is closed.
func happens[T any](tb testing.TB, what string, event <-chan T) T {
	tb.Helper()
	select {
	case v := <-event:
		return v
	case <-time.After(time.Minute):
		tb.Fatalf("it does not happen that %s", what)
		panic("unreachable")
	}
}

// eventually waits until a condition is met.
func eventually(tb testing.TB, what string, met func() bool) {
	tb.Helper()
	deadline, ticker := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !met() {
		select {
		case <-ticker.C:
		case <-deadline:
			stacks := make([]byte, 1<<20)
			tb.Fatalf("it is never true that %s:\n%s", what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// wantNoConnections checks that nothing is left of a driver's connections and calls.
func wantNoConnections(t *testing.T, d *driver) {
	t.Helper()
	eventually(t, "the driver has no connections and calls", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.conns) == 0 && d.calls == 0
	})
}

func TestARemovedDriver_CancelsItsCalls_AndNoOthers(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	leaving, staying := newBlocking(), newBlocking()
	connection, canceled := leaving.begun(t, r, "leaving")
	other, continues := staying.begun(t, r, "staying")
	d := r.drivers["leaving"]

	must(t, d.remove(0))
	happens(t, "the service is told that its call is canceled", leaving.canceled)
	if err := happens(t, "the call ends", canceled); status.Code(err) != codes.Unavailable {
		t.Errorf("the call in progress got %v, want the code Unavailable", err)
	}
	_, err := csi.NewIdentityClient(connection).Probe(t.Context(), &csi.ProbeRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a later call on the same connection got %v, want the code Unavailable", err)
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", r.socket("leaving")); err == nil {
		must(t, conn.Close())
		t.Error("the socket accepts another connection")
	}
	wantNoConnections(t, d)

	select {
	case err := <-continues:
		t.Errorf("the call of another driver ended: %v", err)
	default:
	}
	close(staying.release)
	must(t, happens(t, "the call of another driver ends", continues))
	_, err = csi.NewIdentityClient(other).Probe(t.Context(), &csi.ProbeRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("another driver is not asked any more: %v", err)
	}
}

// If kubelet did not get the answer to its last call, it would repeat the call forever.
func TestUnregistering_WaitsForRunningCalls_AndTheirAnswers(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	for range 20 {
		b := newBlocking()
		conn, ended := b.begun(t, r, "driver")
		d := r.drivers["driver"]
		gone := make(chan error, 1)
		go func() { gone <- r.Unregister("driver") }()
		eventually(t, "the removal begins", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.removal != nil
		})
		if _, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("a call that begins during the removal got %v, want the code Unavailable", err)
		}
		close(b.release)
		if err := happens(t, "the call ends", ended); err != nil {
			t.Errorf("the call that was in progress failed: %v", err)
		}
		must(t, conn.Close())
		must(t, happens(t, "the driver is unregistered", gone))
		wantNoConnections(t, d)
	}
	wantFiles(t, r)
}

// Nothing but what kubelet asks for when it registers a driver depends on the keys.
func TestChangedTopologyKeys_LetRunningCallsContinue(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	b := newBlocking()
	_, ended := b.begun(t, r, "driver")
	register(t, r, "driver", keyed("driver", []string{"zone"}))
	wantVersion(t, r.socket("driver"), "driver zone")
	close(b.release)
	must(t, happens(t, "the call ends", ended))
}

func TestClosing_CancelsAllCalls_AndLeavesOnlySockets(t *testing.T) {
	kubelet(t)
	before := runtime.NumGoroutine()
	r := newRegistry(t)
	var connections []*grpc.ClientConn
	var all []*blocking
	var calls []<-chan error
	for _, name := range []string{"one", "two"} {
		b := newBlocking()
		conn, ended := b.begun(t, r, name)
		connections, all, calls = append(connections, conn), append(all, b), append(calls, ended)
	}
	r.Close()
	for i := range all {
		happens(t, "the service is told that its call is canceled", all[i].canceled)
		if err := happens(t, "the call ends", calls[i]); err == nil {
			t.Error("a call succeeded")
		}
		must(t, connections[i].Close())
	}
	wantFiles(t, r, r.socket("one"), r.registration("one"), r.socket("two"), r.registration("two"))
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// A goroutine has a stack of 4 KiB once it has accepted a connection.
func TestManyDrivers_AreServedByTheGoroutinesOfOne(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", services("driver", "1"))
	wantVersion(t, r.socket("driver"), "driver 1")
	wantNoConnections(t, r.drivers["driver"])
	var before int
	eventually(t, "the goroutines of the call have ended", func() bool {
		earlier := before
		before = runtime.NumGoroutine()
		return before == earlier
	})
	drivers, _ := many(100)
	for name := range drivers {
		must(t, r.Serve(name, services(name, "1")))
		wantVersion(t, r.socket(name), name+" 1")
	}
	eventually(t, "there are no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before })
}

// The socket of a driver may get the descriptor of another one that was removed just before.
func TestDriversThatComeAndGo_AnswerOnTheirOwnSockets(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	for i := range 200 {
		name := []string{"one", "two", "three"}[i%3]
		register(t, r, name, services(name, "1"))
		wantVersion(t, r.socket(name), name+" 1")
		if i%2 == 0 {
			must(t, r.Unregister(name))
		}
	}
}

// A client may also end before it has sent anything.
func TestADriverWhoseClientsHangUp_IsServedFurther(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", services("driver", "1"))
	for range 10 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", r.socket("driver"))
		must(t, err)
		must(t, conn.Close())
	}
	wantVersion(t, r.socket("driver"), "driver 1")
	wantNoConnections(t, r.drivers["driver"])
}

func TestADriverThatLacksDescriptors_AcceptsItsClientsLater(t *testing.T) {
	kubelet(t)
	failed := make(chan string, 1)
	r, err := NewRegistry(".", KubeletRecord{}, funcr.New(func(_, line string) {
		select {
		case failed <- line:
		default:
		}
	}, funcr.Options{}))
	must(t, err)
	t.Cleanup(r.Close)
	register(t, r, "driver", services("driver", "1"))
	happens(t, "it is logged that the driver is served", failed)

	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) })
	client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(client) })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	connected := unix.Connect(client, &unix.SockaddrUnix{Name: r.socket("driver")})
	line := happens(t, "it is logged that the connection cannot be accepted", failed)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	must(t, connected)
	if !strings.Contains(line, "too many open files") {
		t.Errorf("logged: %s", line)
	}
	// The server sends the first byte, which shows that it has accepted the connection.
	if _, err := unix.Read(client, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	wantVersion(t, r.socket("driver"), "driver 1")
}
