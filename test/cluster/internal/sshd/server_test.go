package sshd

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/albertofaria/pav/test/cluster/internal/pki"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// newKey returns a signer and the path of the file with its public key.
func newKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	public, private, err := pki.NewSSHKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(file, public, 0o600); err != nil {
		t.Fatal(err)
	}
	return signer, file
}

// serve starts a server on the loopback device. It returns the server's address and the key that the server accepts.
func serve(t *testing.T, environment []string) (string, ssh.Signer) {
	t.Helper()
	signer, file := newKey(t)
	server, err := New(file, environment)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return listener.Addr().String(), signer
}

func dial(address, user string, method ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{method}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
}

// session starts a server, connects to it, and opens a session.
func session(t *testing.T, environment ...string) (*ssh.Client, *ssh.Session) {
	t.Helper()
	address, signer := serve(t, append([]string{"PATH=" + os.Getenv("PATH")}, environment...))
	client, err := dial(address, "root", ssh.PublicKeys(signer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	opened, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return client, opened
}

// code returns the exit code in a result of Session.Run, or -1 if the result has no exit code.
func code(err error) int {
	if ended, found := errors.AsType[*ssh.ExitError](err); found {
		return ended.ExitStatus()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestCommandsPassTheirOutputAndExitCodeBack(t *testing.T) {
	for command, want := range map[string]struct {
		input, output, errors string
		code                  int
	}{
		"echo out; echo err >&2": {output: "out\n", errors: "err\n"},
		"exit 7":                 {code: 7},
		"kill -TERM $$":          {code: 143},
		"cat; exit 2":            {input: "text", output: "text", code: 2},
		"echo a b | grep -c b":   {output: "1\n"},
		"pwd":                    {output: "/\n"},
		"echo $NAME $HOME":       {output: "value\n"},
		"missing-program":        {errors: "not found", code: 127},
	} {
		t.Run(command, func(t *testing.T) {
			_, session := session(t, "NAME=value")
			var output, errors bytes.Buffer
			session.Stdin = strings.NewReader(want.input)
			session.Stdout, session.Stderr = &output, &errors
			if got := code(session.Run(command)); got != want.code {
				t.Errorf("exit code: got %d, want %d", got, want.code)
			}
			if output.String() != want.output || !strings.Contains(errors.String(), want.errors) {
				t.Errorf("got %q and %q, want %q and %q", output.String(), errors.String(), want.output, want.errors)
			}
		})
	}
}

func TestLargeOutputArrivesInFull(t *testing.T) {
	_, session := session(t)
	output, err := session.Output("head -c 3000000 /dev/zero")
	if err != nil || len(output) != 3000000 {
		t.Errorf("got %d bytes, %v", len(output), err)
	}
}

func TestCommandEndsEvenIfTheInputContinues(t *testing.T) {
	_, session := session(t)
	if _, err := session.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if got := code(session.Run("exit 3")); got != 3 {
		t.Errorf("exit code: got %d, want 3", got)
	}
}

func TestOnlyRootWithTheKeyIsLetIn(t *testing.T) {
	address, signer := serve(t, nil)
	other, _ := newKey(t)
	for name, test := range map[string]struct {
		user   string
		method ssh.AuthMethod
	}{
		"another key":  {user: "root", method: ssh.PublicKeys(other)},
		"another user": {user: "nobody", method: ssh.PublicKeys(signer)},
		"a password":   {user: "root", method: ssh.Password("")},
	} {
		client, err := dial(address, test.user, test.method)
		if err == nil {
			_ = client.Close()
			t.Errorf("%s is let in", name)
		}
	}
}

func TestShellsTerminalsAndForwardedPortsAreRefused(t *testing.T) {
	client, session := session(t)
	if err := session.RequestPty("xterm", 24, 80, nil); err == nil {
		t.Error("a terminal is given")
	}
	if connection, err := client.Dial("tcp", client.RemoteAddr().String()); err == nil {
		_ = connection.Close()
		t.Error("a port is forwarded")
	}
	if err := session.Shell(); err == nil && session.Wait() == nil {
		t.Error("there is a shell")
	}
}

func TestEndOfTheConnectionEndsTheCommandAndWhatItStarted(t *testing.T) {
	client, session := session(t)
	output, err := session.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start("sleep 1000 & echo $!; wait"); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 32)
	count, err := output.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	sleeper, err := strconv.Atoi(strings.TrimSpace(string(text[:count])))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := process.Until(t.Context(), 5*time.Millisecond, func() (bool, error) { return ended(sleeper), nil }); err != nil {
		t.Error(err)
	}
}

// ended reports whether a process no longer exists or is a zombie.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(content), ") Z ")
}

func TestKeyHasToBeThere(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".missing"} {
		if _, err := New(file, nil); err == nil {
			t.Errorf("%s is taken for a key", file)
		}
	}
}
