package kubelet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/test/agent"
)

// Agent is a node agent in a process of its own, which runs the test's binary again: see Main.
type Agent struct {
	command *exec.Cmd
	log     *agent.Buffer
	effects string // the path of the file with the effects
	ask     io.WriteCloser
	answers *bufio.Reader

	ended chan struct{} // closed at the process's end
	err   error         // how it ended
}

// endsWithin is how long an agent may take to end.
const endsWithin = 2 * time.Minute

// Launch starts an agent for the node, with the permissions of config. It is killed after killAfter of its effects,
// which are its writes to the API server and its changes to mounts and files; 0 means never. It runs until Stop or Kill
// is called, or it is killed.
func (k *Kubelet) Launch(tb testing.TB, config *rest.Config, killAfter int) *Agent {
	tb.Helper()
	a := k.Prepare(tb, config, killAfter)
	a.Go()
	return a
}

// LaunchWith is Launch for an agent that is never killed, and whose line to the API server has faults.
func (k *Kubelet) LaunchWith(t *testing.T, config *rest.Config, faults agent.Faults) *Agent {
	t.Helper()
	a := k.prepare(t, config, 0, faults)
	a.Go()
	return a
}

// Prepare is Launch for an agent that begins its work when its Go is called.
func (k *Kubelet) Prepare(tb testing.TB, config *rest.Config, killAfter int) *Agent {
	tb.Helper()
	return k.prepare(tb, config, killAfter, agent.Faults{})
}

func (k *Kubelet) prepare(tb testing.TB, config *rest.Config, killAfter int, faults agent.Faults) *Agent {
	tb.Helper()
	a := &Agent{log: &agent.Buffer{}, ended: make(chan struct{})}
	file, err := os.CreateTemp(tb.TempDir(), "effects")
	if err != nil {
		tb.Fatal(err)
	}
	a.effects = file.Name()
	if err := file.Close(); err != nil {
		tb.Fatal(err)
	}
	raw, err := json.Marshal(settings{
		Host: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData, Impersonate: config.Impersonate,
		Node: k.Node, Dir: k.Dir, KillAfter: killAfter, Effects: a.effects, Faults: faults,
	})
	if err != nil {
		tb.Fatal(err)
	}
	path := a.effects + ".json"
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		tb.Fatal(err)
	}
	a.start(tb, path)
	return a
}

// start starts the process.
func (a *Agent) start(tb testing.TB, path string) {
	tb.Helper()
	a.command = exec.CommandContext(context.WithoutCancel(tb.Context()), "/proc/self/exe")
	a.command.Env = append(os.Environ(), settingsVariable+"="+path, "GORACE=atexit_sleep_ms=0")
	a.command.Stderr = a.log
	a.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	answers, err := a.command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	a.answers = bufio.NewReader(answers)
	if a.ask, err = a.command.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := a.command.Start(); err != nil {
		tb.Fatal("starting an agent:", err)
	}
	go func() {
		a.err = a.command.Wait()
		close(a.ended)
	}()
}

// Go makes an agent begin its work.
func (a *Agent) Go() {
	_, _ = fmt.Fprintln(a.ask, "go") // It fails if the process has ended, which other checks report.
}

// Ended returns a channel that is closed when the agent's process has ended.
func (a *Agent) Ended() <-chan struct{} { return a.ended }

// Log returns what the agent has logged.
func (a *Agent) Log() string { return a.log.String() }

// Kill kills the agent and waits for its end.
func (a *Agent) Kill(t *testing.T) {
	t.Helper()
	if err := a.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-a.ended
}

// Stop makes the agent end. The test fails if the agent returns an error, leaves a goroutine, has a data race, or
// lacked a permission.
func (a *Agent) Stop(tb testing.TB) {
	tb.Helper()
	if err := a.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Error(err)
	}
	select {
	case <-a.ended:
	case <-time.After(endsWithin):
		tb.Error("the agent does not end")
		_ = a.command.Process.Signal(syscall.SIGQUIT) // so that it prints its stacks
		<-a.ended
	}
	if a.err != nil {
		tb.Errorf("the agent ended with: %v", a.err)
	}
	a.Check(tb)
}

// Check fails the test if the agent logged a word that no agent may log. It shows the log if the test has failed.
func (a *Agent) Check(tb testing.TB) {
	tb.Helper()
	for _, never := range []string{"forbidden", "DATA RACE", "panic"} {
		if strings.Contains(a.Log(), never) {
			tb.Errorf("the agent's log has the word %q", never)
		}
	}
	if tb.Failed() {
		tb.Logf("log of the agent:\n%s", shorten(a.Log()))
	}
}

// shorten keeps only two of the lines of a log that differ in nothing but their times and durations.
func shorten(log string) string {
	times := regexp.MustCompile(`"(time|duration)":"[^"]*"`)
	seen := map[string]int{}
	var text strings.Builder
	for line := range strings.Lines(log) {
		what := times.ReplaceAllString(line, "")
		if seen[what]++; seen[what] <= 2 {
			text.WriteString(line)
		}
	}
	return text.String()
}

// Effects returns the agent's effects so far.
func (a *Agent) Effects(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(a.effects)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

// Usage is the resource usage of an agent.
type Usage struct {
	Goroutines, Descriptors int

	// Heap is in bytes, after a garbage collection. Resident is how many bytes of memory the process has then.
	Heap, Resident uint64

	// Strikes is how often each fault of its line occurred.
	Strikes agent.Strikes
}

// Usage requests the resource usage of the agent.
func (a *Agent) Usage(t *testing.T) Usage {
	t.Helper()
	if _, err := fmt.Fprintln(a.ask, "usage"); err != nil {
		t.Fatal(err)
	}
	line, err := a.answers.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	usage := Usage{}
	if err := json.Unmarshal(line, &usage); err != nil {
		t.Fatal(err)
	}
	return usage
}
