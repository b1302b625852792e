package observability

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err := errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	return port
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.Status + string(text), errors.Join(err, response.Body.Close())
}

func TestProfiling_IsServedOnLoopback_UntilItsContextEnds(t *testing.T) {
	port := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Profiling(":" + port).Start(ctx) }()

	deadline, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var text string
	var err error
	for text, err = get(deadline, "http://127.0.0.1:"+port+"/debug/pprof/goroutine?debug=1"); err != nil && deadline.Err() == nil; {
		text, err = get(deadline, "http://127.0.0.1:"+port+"/debug/pprof/goroutine?debug=1")
	}
	if err != nil || !strings.HasPrefix(text, "200 OKgoroutine profile:") {
		t.Errorf("got %q, %v", text, err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			if _, err := get(deadline, "http://"+net.JoinHostPort(ip.IP.String(), port)+"/debug/pprof/"); err == nil {
				t.Errorf("profiles are served at %s, too", ip.IP)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestValidateProfiling(t *testing.T) {
	for address, valid := range map[string]bool{"": true, ":6060": true, "0.0.0.0:6060": true, "[::1]:6060": true, "6060": false, "localhost": false} {
		if err := ValidateProfiling(address); (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestFilled_IsReadyWhenTheManagerHasStartedIt(t *testing.T) {
	f := &Filled{}
	if f.Check(nil) == nil {
		t.Error("the caches have filled before they could")
	}
	if err := errors.Join(f.Start(t.Context()), f.Check(nil)); err != nil || f.NeedLeaderElection() {
		t.Errorf("%v, or a replica that waits is never ready", err)
	}
}

func TestLimitProfiles_AllocationsAreRecordedForAnAddressOnly(t *testing.T) {
	before := runtime.MemProfileRate
	t.Cleanup(func() { runtime.MemProfileRate = before })
	if LimitProfiles("127.0.0.1:6060"); runtime.MemProfileRate != before {
		t.Errorf("with an address, the rate is %d", runtime.MemProfileRate)
	}
	if LimitProfiles(""); runtime.MemProfileRate != 0 {
		t.Errorf("without an address, the rate is %d", runtime.MemProfileRate)
	}
}
