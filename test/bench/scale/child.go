package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/test/bench/machine"
)

// childRole is the environment variable with the role of a child process.
const childRole = "PAV_SCALE_ROLE"

// orders are what a child process gets to know.
type orders struct {
	Host          string
	CA, Cert, Key []byte

	// From and Count are the nodes whose caches the process has.
	From, Count int
}

// usage is what a child process has used since its start, and what it holds now.
type usage struct {
	Requests, Watches, Bytes int64
	Resident, Heap           int64 // in bytes
}

// meter counts the requests and answers of a process.
type meter struct{ requests, watches, bytes atomic.Int64 }

func (m *meter) transport(next http.RoundTripper) http.RoundTripper { return metered{m, next} }

type metered struct {
	*meter

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m metered) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" {
		m.watches.Add(1)
	} else {
		m.requests.Add(1)
	}
	response, err := m.next.RoundTrip(request)
	if err == nil {
		response.Body = counted{response.Body, &m.bytes}
	}
	return response, err
}

type counted struct {
	io.ReadCloser

	bytes *atomic.Int64
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// runChild does the work of a child process. It answers each line of in with its usage.
func runChild(ctx context.Context, role string, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return errors.New("no orders")
	}
	o := orders{}
	if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
		return err
	}
	m := &meter{}
	config := &rest.Config{Host: o.Host, TLSClientConfig: rest.TLSClientConfig{CAData: o.CA, CertData: o.Cert, KeyData: o.Key}}
	config.Wrap(m.transport)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	switch role {
	case controllerRole:
		go func() { ended <- runController(ctx, config) }()
	case nodesRole:
		if err := startCaches(ctx, config, o); err != nil {
			return err
		}
		ended <- nil
	}
	for lines.Scan() {
		now, err := m.usage()
		if err == nil {
			err = json.NewEncoder(out).Encode(now)
		}
		if err != nil {
			return err
		}
	}
	stop()
	return <-ended // A leader gives up its leadership.
}

func (m *meter) usage() (usage, error) {
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return usage{}, err
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(machine.Value(string(status), "VmRSS"), " kB"), 10, 64)
	return usage{
		Requests: m.requests.Load(), Watches: m.watches.Load(), Bytes: m.bytes.Load(),
		Resident: kilobytes << 10, Heap: int64(stats.HeapAlloc), //nolint:gosec // A heap is smaller than 8 EiB.
	}, err
}

// child is a child process.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// startChild starts a child process with additional variables, which ends with the context.
func startChild(ctx context.Context, role string, config *rest.Config, o orders, variables ...string) (*child, error) {
	o.Host, o.CA, o.Cert, o.Key = config.Host, config.CAData, config.CertData, config.KeyData
	c := &child{command: exec.CommandContext(ctx, "/proc/self/exe")}
	c.command.Env = append(append(os.Environ(), childRole+"="+role), variables...)
	c.command.Stderr = os.Stderr
	in, err := c.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.answers = in, bufio.NewReader(out)
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	return c, json.NewEncoder(in).Encode(o)
}

// usage asks the process what it has used.
func (c *child) usage() (usage, error) {
	u := usage{}
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		return u, err
	}
	line, err := c.answers.ReadBytes('\n')
	if err != nil {
		return u, fmt.Errorf("asking a process for its usage: %w", err)
	}
	return u, json.Unmarshal(line, &u)
}

// end ends the process.
func (c *child) end() error {
	return errors.Join(c.in.Close(), c.command.Wait())
}
