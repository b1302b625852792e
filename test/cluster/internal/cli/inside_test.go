package cli

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/albertofaria/pav/test/cluster/internal/control"
)

// serveComponents serves requests in the place of a node's first process, and returns its socket.
func serveComponents(t *testing.T, running map[string]bool) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- control.Serve(listener, func(request control.Request) control.Answer {
			var answer control.Answer
			if _, known := running[request.Name]; request.Name != "" && !known {
				answer.Error = "there is no component " + request.Name + " here"
				return answer
			}
			switch request.Operation {
			case control.Start, control.Restart:
				running[request.Name] = true
			case control.Stop:
				running[request.Name] = false
			default:
			}
			for name := range running {
				answer.Components = append(answer.Components, control.State{Name: name, Running: running[name]})
			}
			return answer
		})
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("serving ended with %v", err)
		}
	})
	return socket
}

func TestSystemctl(t *testing.T) {
	for line, want := range map[string]struct {
		output  string
		code    int
		refused string
		running []string
	}{
		"start kubelet":         {running: []string{"containerd", "kubelet"}},
		"start kubelet.service": {running: []string{"containerd", "kubelet"}},
		"restart kubelet":       {running: []string{"containerd", "kubelet"}},
		"stop kubelet":          {},
		"stop containerd":       {running: []string{}},
		"is-active containerd":  {output: "active\n"},
		"is-active kubelet":     {output: "inactive\n", code: 3},
		"show containerd --property ActiveState --value": {output: "active\n"},
		"show kubelet --property=ActiveState --value":    {output: "inactive\n"},
		"show kubelet -p ActiveState":                    {output: "ActiveState=inactive\n"},
		"show kubelet":                                   {code: 1, refused: "ActiveState"},
		"show kubelet --property MainPID":                {code: 1, refused: "MainPID"},
		"show kubelet --property ActiveState --all":      {code: 1, refused: "unknown flag"},
		"show --property ActiveState --value docker":     {code: 1, refused: "no component"},
		"is-active docker":                               {code: 1, refused: "no component"},
		"start docker":                                   {code: 1, refused: "no component"},
		"stop":                                           {code: 1, refused: "accepts 1 arg"},
		"stop kubelet containerd":                        {code: 1, refused: "accepts 1 arg"},
		"daemon-reload":                                  {code: 1, refused: "unknown command"},
		"mask kubelet":                                   {code: 1, refused: "unknown command"},
		"--no-block stop kubelet":                        {code: 1, refused: "unknown flag"},
		"":                                               {code: 1, refused: "this systemctl knows"},
	} {
		t.Run(line, func(t *testing.T) {
			components := map[string]bool{"containerd": true, "kubelet": false}
			command := newSystemctl(serveComponents(t, components))
			var output bytes.Buffer
			command.SetOut(&output)
			command.SetErr(io.Discard)
			command.SetArgs(strings.Fields(line))
			command.SilenceErrors, command.SilenceUsage = true, true
			err := command.Execute()
			var exit exitError
			switch {
			case errors.As(err, &exit):
				if exit.code != want.code {
					t.Errorf("exit code: got %d, want %d", exit.code, want.code)
				}
			case (err != nil) != (want.code == 1) || err != nil && !strings.Contains(err.Error(), want.refused):
				t.Errorf("got %v, want an error with %q", err, want.refused)
			}
			if output.String() != want.output {
				t.Errorf("got %q, want %q", output.String(), want.output)
			}
			if want.running == nil {
				want.running = []string{"containerd"}
			}
			var running []string
			for name, is := range components {
				if is {
					running = append(running, name)
				}
			}
			slices.Sort(running)
			if !slices.Equal(running, want.running) {
				t.Errorf("running: got %v, want %v", running, want.running)
			}
		})
	}
}

func TestSystemctlOutsideANodeSaysSo(t *testing.T) {
	command := newSystemctl(filepath.Join(t.TempDir(), "missing"))
	command.SetErr(io.Discard)
	command.SetOut(io.Discard)
	command.SetArgs([]string{"stop", "kubelet"})
	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "connecting to the node") {
		t.Errorf("got %v", err)
	}
}
