package kubelet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/test/agent"
)

// settingsVariable is the environment variable that makes a test binary run as an agent. Its value is the path of a
// file with the settings.
const settingsVariable = "PAV_TEST_NODE_AGENT"

// settings are the settings of an agent's process.
type settings struct {
	Host          string
	CA, Cert, Key []byte
	Impersonate   rest.ImpersonationConfig
	Node, Dir     string
	KillAfter     int
	Effects       string
	Faults        agent.Faults
}

// Main runs the agent and returns true if this process is to be one. TestMain must call it before anything else.
func Main() (code int, isAgent bool) {
	path := os.Getenv(settingsVariable)
	if path == "" {
		return 0, false
	}
	if err := beAgent(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func beAgent(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	s := settings{}
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	effects, err := newEffects(s.Effects, s.KillAfter)
	if err != nil {
		return err
	}
	mount.SetTrace(effects.add)
	config := &rest.Config{
		Host: s.Host, Impersonate: s.Impersonate,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CA, CertData: s.Cert, KeyData: s.Key},
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &writes{next: next, effects: effects} })
	line := &agent.Line{Faults: s.Faults}
	line.Connect(config, nil)

	o := node.DefaultOptions()
	o.NodeName, o.KubeletDir, o.MountNamespace = s.Node, s.Dir, "/proc/self/ns/mnt"
	o.MetricsAddress, o.ProbeAddress = "0", "0"
	o.Version = "by-hand"
	o.QPS, o.Burst = 1000, 1000
	log := observability.NewLogger(os.Stderr, observability.LogOptions{})
	observability.InstallLogger(log)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // It is the main function of a process.
	defer stop()
	questions := bufio.NewScanner(os.Stdin)
	if !questions.Scan() {
		return errors.New("the test has ended before the agent was to begin")
	}
	go answer(questions, line)
	if err := node.Run(ctx, config, o, log); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	return checkGoroutines()
}

// answer writes the resource usage of the agent whenever the test asks for it.
func answer(questions *bufio.Scanner, line *agent.Line) {
	for questions.Scan() {
		debug.FreeOSMemory() // It also collects garbage.
		memory := runtime.MemStats{}
		runtime.ReadMemStats(&memory)
		descriptors, _ := os.ReadDir("/proc/self/fd")
		_ = json.NewEncoder(os.Stdout).Encode(Usage{
			Goroutines: runtime.NumGoroutine(), Descriptors: len(descriptors), Heap: memory.HeapAlloc, Resident: resident(), Strikes: line.Strikes(),
		})
	}
}

// resident returns how many bytes of memory the process has, or 0 if that cannot be read.
func resident() uint64 {
	size, pages := uint64(0), uint64(0)
	statm, _ := os.ReadFile("/proc/self/statm")
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// checkGoroutines returns an error if goroutines of PaV are left after the agent has ended.
func checkGoroutines() error {
	left := ""
	for until := time.Now().Add(endsWithin); time.Now().Before(until); <-time.After(20 * time.Millisecond) {
		left = ""
		stacks := make([]byte, 4<<20)
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "albertofaria/pav/internal/") {
				left = stack
			}
		}
		if left == "" {
			return nil
		}
	}
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	return fmt.Errorf("a goroutine of PaV's is left: %s", left)
}

// effects records the effects of the agent, and kills the process after the last effect that it may have.
type effects struct {
	killAfter int

	mu    sync.Mutex
	file  *os.File
	count int
}

func newEffects(path string, killAfter int) (*effects, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return &effects{killAfter: killAfter, file: file}, nil
}

func (e *effects) add(effect string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	_, _ = fmt.Fprintln(e.file, effect)
	if e.count == e.killAfter {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // The signal may take a moment; nothing more may happen until then.
	}
}

// writes records the agent's successful writes to the API server, except those of events.
type writes struct {
	next    http.RoundTripper
	effects *effects
}

// RoundTrip implements http.RoundTripper.
func (w *writes) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet && response.StatusCode < http.StatusMultipleChoices &&
		!strings.Contains(request.URL.Path, "/events") {
		w.effects.add(request.Method + " " + request.URL.Path)
	}
	return response, err
}
