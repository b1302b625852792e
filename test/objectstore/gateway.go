package objectstore

import (
	"bytes"
	"context"
	_ "embed" // for s3.sh
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Functions is the text of s3.sh.
//
//go:embed s3.sh
var Functions string

// Account is an access key and its secret key.
type Account struct {
	Key, Secret string
}

// Admin is the account that may do everything.
var Admin = Account{Key: "admin", Secret: "open-sesame"}

// Options are the differences between gateways.
type Options struct {
	// Directory has the buckets and the accounts. Several gateways can share one. By default, it is a new one.
	Directory string

	// Attributes makes the gateway keep metadata in extended attributes, and not in files of their own.
	Attributes bool

	// Cache makes the gateway use accounts for two minutes as it has read them.
	Cache bool
}

// Gateway is a versitygw that runs until the end of the test.
type Gateway struct {
	// Endpoint is the URL.
	Endpoint string

	// Directory has the directories data, metadata and accounts.
	Directory string

	command *exec.Cmd
	output  bytes.Buffer
	ended   chan struct{}
}

// Start starts a gateway on a free port of the loopback interface, and waits until it answers.
func Start(t *testing.T, options Options) *Gateway {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if options.Directory == "" {
		options.Directory = t.TempDir()
	}
	for _, name := range []string{"data", "metadata", "accounts"} {
		if err := os.MkdirAll(filepath.Join(options.Directory, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		g, err := start(ctx, program, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Stop(t) })
		if g.answers(ctx) {
			return g
		}
		// Another process may have taken the port in the meantime.
		g.Stop(t)
		if ctx.Err() != nil {
			t.Fatalf("the gateway does not answer:\n%s", g.output.String())
		}
	}
}

// build builds the gateway where "make bin/versitygw" does, if that file is not up to date. It works for tests of packages
// directly below the directory test.
var build = sync.OnceValues(func() (string, error) {
	program, err := filepath.Abs("../../bin/versitygw")
	if err != nil {
		return "", fmt.Errorf("finding the gateway: %w", err)
	}
	const pkg = "github.com/versity/versitygw/cmd/versitygw"
	arguments := []string{"-C", "../tools/versitygw", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, pkg}
	command := exec.Command("go", arguments...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w\n%s", err, output)
	}
	return program, nil
})

func start(ctx context.Context, program string, options Options) (*Gateway, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(options.Directory, name) }
	arguments := []string{"--port", address, "--health", "/health", "--quiet", "--iam-dir", in("accounts")}
	if !options.Cache {
		arguments = append(arguments, "--iam-cache-disable")
	}
	arguments = append(arguments, "posix", "--disable-object-lock-file")
	if !options.Attributes {
		arguments = append(arguments, "--sidecar", in("metadata"))
	}
	g := &Gateway{Endpoint: "http://" + address, Directory: options.Directory, ended: make(chan struct{})}
	g.command = exec.Command(program, append(arguments, in("data"))...) //nolint:noctx // Stop ends it.
	g.command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+Admin.Key, "ROOT_SECRET_KEY="+Admin.Secret)
	g.command.Stdout, g.command.Stderr = &g.output, &g.output
	g.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := g.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}
	go func() {
		_ = g.command.Wait() // Stop asks how it ended
		close(g.ended)
	}()
	return g, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return address, nil
}

// answers waits until the gateway answers, and reports whether it does so before it or the context ends.
func (g *Gateway) answers(ctx context.Context) bool {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.Endpoint+"/health", nil); err == nil {
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
				return response.StatusCode == http.StatusOK
			}
		}
		select {
		case <-again.C:
		case <-g.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Stop ends the gateway, and fails the test if it does not end by itself. What it has printed is logged with a failure.
func (g *Gateway) Stop(t *testing.T) {
	t.Helper()
	_ = g.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-g.ended:
	case <-time.After(20 * time.Second):
		t.Error("the gateway does not end")
		_ = g.command.Process.Kill()
		<-g.ended
	}
	if t.Failed() {
		t.Logf("the gateway at %s:\n%s", g.Endpoint, g.output.String())
	}
}

// Command returns a command that runs a Bash script with the functions of s3.sh. The script finds the arguments in $1 and
// following.
func (g *Gateway) Command(ctx context.Context, account Account, script string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", append([]string{"-euc", Functions + script, "bash"}, arguments...)...)
	command.Env = append(os.Environ(),
		"S3_ENDPOINT="+g.Endpoint, "AWS_ACCESS_KEY_ID="+account.Key, "AWS_SECRET_ACCESS_KEY="+account.Secret)
	return command
}
