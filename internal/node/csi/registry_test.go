package csi

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// kubelet makes a temporary directory the working directory of the test, and creates kubelet's directory of
// registration sockets in it. Paths of sockets must be short, but the path of a temporary directory contains the name
// of the test.
func kubelet(tb testing.TB) {
	tb.Helper()
	tb.Chdir(tb.TempDir())
	must(tb, os.MkdirAll("plugins_registry", 0o755))
}

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	r, err := NewRegistry(".", KubeletRecord{Node: "node1", Reader: &pluginManager{}}, testr.New(t))
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

// register registers a driver of a Registry that does not run: kubelet is told at once.
func register(t *testing.T, r *Registry, name string, services Services) {
	t.Helper()
	must(t, r.Register(name, services))
	r.decide(t.Context())
	r.tell()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// services returns the services of a PavProvisioner of a version.
func services(name, version string) Services {
	return ForProvisioner(name, "node1", version, nil, Topology{})
}

// dial runs a function on a connection to a socket.
func dial(tb testing.TB, path string, f func(context.Context, *grpc.ClientConn) error) error {
	tb.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(tb, err)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	return f(ctx, conn)
}

// version asks the driver behind a socket for its name and version.
func version(t *testing.T, path string) (answer string, err error) {
	t.Helper()
	err = dial(t, path, func(ctx context.Context, conn *grpc.ClientConn) error {
		info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
		answer = info.GetName() + " " + info.GetVendorVersion()
		return err
	})
	return answer, err
}

func wantVersion(t *testing.T, path, want string) {
	t.Helper()
	if got, err := version(t, path); err != nil || got != want {
		t.Errorf("%s answers %q, %v; want %q", path, got, err, want)
	}
}

// notify tells a driver how its registration went, as kubelet does.
func notify(t *testing.T, r *Registry, name string, registered bool) {
	t.Helper()
	must(t, dial(t, r.registration(name), func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := registerapi.NewRegistrationClient(conn).NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: registered, Error: "why"})
		return err
	}))
}

// files returns the files in the directories of sockets.
func files(t *testing.T, r *Registry) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range []string{r.socketDir, r.registryDir} {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, entry := range entries {
			found[filepath.Join(dir, entry.Name())] = true
		}
	}
	return found
}

func wantFiles(t *testing.T, r *Registry, paths ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, path := range paths {
		want[path] = true
	}
	if diff := cmp.Diff(want, files(t, r)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestARegisteredDriverAnswersKubelet(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", services("driver", "1"))
	socket, registration := r.socket("driver"), r.registration("driver")
	wantFiles(t, r, socket, registration)
	must(t, dial(t, registration, func(ctx context.Context, conn *grpc.ClientConn) error {
		kubelet := registerapi.NewRegistrationClient(conn)
		info, err := kubelet.GetInfo(ctx, &registerapi.InfoRequest{})
		must(t, err)
		if info.GetType() != "CSIPlugin" || info.GetName() != "driver" || info.GetEndpoint() != socket || len(info.GetSupportedVersions()) == 0 {
			t.Errorf("GetInfo answers %v", info)
		}
		return nil
	}))
	for _, registered := range []bool{true, false} {
		notify(t, r, "driver", registered)
	}
	wantVersion(t, socket, "driver 1")
	for _, path := range []string{socket, registration} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
	}
}

func TestRegisteringAgainChangesNothing(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", services("driver", "1"))
	register(t, r, "driver", services("driver", "2"))
	wantVersion(t, r.socket("driver"), "driver 1")
}

func TestDriversAreRegisteredSideBySide_AndOneGoesWithoutTheOther(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	if !r.Empty() {
		t.Error("a new registry has drivers")
	}
	long := strings.Repeat("long-", 12) + "long"
	register(t, r, long, services(long, "1"))
	register(t, r, "other", services("other", "1"))
	must(t, r.Unregister(long))
	wantFiles(t, r, r.socket("other"), r.registration("other"))
	wantVersion(t, r.socket("other"), "other 1")
	must(t, r.Unregister(long)) // It may be repeated.
	must(t, r.Unregister("other"))
	wantFiles(t, r)
	if !r.Empty() {
		t.Error("an unregistered driver is counted")
	}
	register(t, r, "other", services("other", "2"))
	wantVersion(t, r.socket("other"), "other 2")
}

func TestSocketsOutliveTheAgent_AndTheNextOneRemovesThem(t *testing.T) {
	kubelet(t)
	first := newRegistry(t)
	register(t, first, "driver", services("driver", "1"))
	first.Close()
	wantFiles(t, first, first.socket("driver"), first.registration("driver"))
	if _, err := version(t, first.socket("driver")); err == nil {
		t.Error("a driver answers whose agent has ended")
	}
	next := newRegistry(t)
	must(t, next.Unregister("driver"))
	wantFiles(t, next)
}

// If a socket disappears even for a moment, kubelet unregisters the driver, and its pods fail.
func TestTheNextAgentTakesOver_AndThePathsNeverVanish(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", services("driver", "first"))
	paths := []string{r.socket("driver"), r.registration("driver")}

	stop, missing := make(chan struct{}), make(chan string, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, path := range paths {
				if _, err := os.Lstat(path); err != nil {
					missing <- err.Error()
					return
				}
			}
		}
	})
	for range 100 {
		r.Close()
		r = newRegistry(t)
		register(t, r, "driver", services("driver", "next"))
	}
	close(stop)
	watching.Wait()
	select {
	case why := <-missing:
		t.Error(why)
	default:
	}
	wantVersion(t, r.socket("driver"), "driver next")
	wantFiles(t, r, paths...)
}

func TestAnAgentKilledDuringRegistration_DoesNotBlockTheNext(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	for _, path := range []string{temporaryPath(r.socket("driver")), temporaryPath(r.registration("driver")), r.socket("driver")} {
		must(t, os.WriteFile(path, nil, 0o600))
	}
	register(t, r, "driver", services("driver", "1"))
	wantFiles(t, r, r.socket("driver"), r.registration("driver"))
	wantVersion(t, r.socket("driver"), "driver 1")
}

func TestADriverThatCannotBeServedLeavesNothing(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	// A socket cannot replace a directory that is not empty.
	must(t, os.MkdirAll(filepath.Join(r.socket("driver"), "file"), 0o755))
	if err := r.Register("driver", services("driver", "1")); err == nil || !strings.Contains(err.Error(), `"driver"`) {
		t.Errorf("got error %v", err)
	}
	wantFiles(t, r, r.socket("driver"))
	if !r.Empty() {
		t.Error("it counts as registered")
	}
	must(t, os.RemoveAll(r.socket("driver")))
	register(t, r, "driver", services("driver", "2"))
	wantVersion(t, r.socket("driver"), "driver 2")
}

func TestPruneRemovesOnlyTheSocketsOfDriversThatHaveGone(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "registered", services("registered", "1"))
	var stay []string
	for _, name := range []string{"registered", "listed", pavv1.Driver} {
		stay = append(stay, r.socket(name), r.registration(name))
	}
	for _, name := range []string{
		"other.example.org-reg.sock", ".hidden.sock", "pav.txt", "pav-notes",
		// The registration socket of another vendor's driver, as node-driver-registrar names it, and a similar one.
		"pav-nfs-reg.sock", "pav-nfs.sock",
	} {
		stay = append(stay, filepath.Join(r.registryDir, name))
	}
	leave := []string{r.socket("gone"), r.registration("gone"), temporaryPath(r.socket("gone")), temporaryPath(r.registration("gone")), temporaryPath(r.socket("listed"))}
	for _, path := range slices.Concat(stay[2:], leave) {
		must(t, os.WriteFile(path, nil, 0o600))
	}
	must(t, r.Prune([]string{"listed", pavv1.Driver}))
	wantFiles(t, r, stay...)
	wantVersion(t, r.socket("registered"), "registered 1")
}

func TestAKubeletDirectoryThatIsTooLongIsRefused(t *testing.T) {
	kubelet(t)
	long := strings.Repeat("x", 60)
	if _, err := NewRegistry(long, KubeletRecord{}, testr.New(t)); err == nil || !strings.Contains(err.Error(), long) || !strings.Contains(err.Error(), "107") {
		t.Errorf("got error %v", err)
	}
}

func TestNothingRunsAfterClose(t *testing.T) {
	kubelet(t)
	before := runtime.NumGoroutine()
	r := newRegistry(t)
	for _, name := range []string{"one", "two", "three"} {
		register(t, r, name, services(name, "1"))
		wantVersion(t, r.socket(name), name+" 1")
	}
	r.Close()
	r.Close() // It may be repeated.
	deadline, ticker := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer ticker.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-ticker.C:
		case <-deadline:
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// A client that connects and sends nothing, such as a stopped kubelet, must not delay the end of the agent.
func TestUnregisteringWaitsForNoClient(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", services("driver", "1"))
	idle, err := (&net.Dialer{}).DialContext(t.Context(), "unix", r.socket("driver"))
	must(t, err)
	// The server sends the first byte, which shows that it has accepted the connection.
	if _, err := idle.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Unregister("driver") }()
	select {
	case err := <-ended:
		must(t, errors.Join(err, idle.Close()))
	case <-time.After(time.Minute):
		must(t, idle.Close())
		t.Errorf("it went on only when the client had gone: %v", <-ended)
	}
}
