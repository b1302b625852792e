package selftest

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// progress reports steps while they run. On a terminal, the line of the current step counts the seconds; otherwise,
// there is one line for each step that has ended.
type progress struct {
	out   io.Writer
	style cli.Style
	live  bool // on a terminal

	volume string // the last heading that was written
	stop   func() // stops counting seconds
}

// nameWidth is the width of the column of the steps' names.
const nameWidth = 36

func (p *progress) heading(text string) {
	_, _ = fmt.Fprintln(p.out, p.style.Bold(text))
}

// begin reports that a step begins.
func (p *progress) begin(volume, name string) {
	if volume != "" && volume != p.volume {
		_, _ = fmt.Fprintln(p.out, p.style.Bold(volume))
	}
	p.volume = volume
	if !p.live {
		return
	}
	done, ended := make(chan struct{}), make(chan struct{})
	p.stop = func() { close(done); <-ended }
	go p.tick(name, done, ended)
}

// tick rewrites the line of a step each second, until done is closed.
func (p *progress) tick(name string, done <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	began := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K  %-8s %-*s %6s", "…", nameWidth, name, cli.Duration(time.Since(began).Truncate(time.Second)))
		select {
		case <-done:
			_, _ = fmt.Fprint(p.out, "\r\x1b[K")
			return
		case <-ticker.C:
		}
	}
}

// end reports the result of a step.
func (p *progress) end(s *Step) {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	word := fmt.Sprintf("%-8s", s.Result)
	switch s.Result {
	case Passed:
		word = p.style.Good(word)
	case Warning:
		word = p.style.Warn(word)
	case Failed:
		word = p.style.Bad(word)
	case Skipped:
		word = p.style.Dim(word)
	}
	took := cli.Duration(time.Duration(s.Seconds * float64(time.Second)))
	if s.Result == Skipped {
		took = ""
	}
	lines := strings.Split(cli.Plain(s.Message), "\n")
	_, _ = fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf("  %s %-*s %6s  %s", word, nameWidth, s.Name, took, lines[0]), " "))
	for _, line := range append(lines[1:], s.Details...) {
		_, _ = fmt.Fprintln(p.out, strings.TrimRight("             "+line, " "))
	}
}

// report writes the summary at the end.
func (p *progress) report(r *Report) {
	_, _ = fmt.Fprintln(p.out)
	summary := fmt.Sprintf("%s %s, in %s", r.Provisioner, r.summary(), cli.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if r.Passed {
		_, _ = fmt.Fprintln(p.out, p.style.Good(summary))
	} else {
		_, _ = fmt.Fprintln(p.out, p.style.Bad(summary))
	}
	if len(r.Left) == 0 {
		return
	}
	_, _ = fmt.Fprintln(p.out, "\nThis is left:")
	for _, left := range r.Left {
		name := left.Name
		if left.Namespace != "" {
			name = left.Namespace + "/" + name
		}
		_, _ = fmt.Fprintf(p.out, "  %s %s: %s\n", left.Kind, p.style.Bold(name), cli.Plain(left.Why))
		for _, command := range left.Commands {
			_, _ = fmt.Fprintf(p.out, "      %s\n", command)
		}
	}
}
