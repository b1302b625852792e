package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// Render writes an answer for people, with times in the location's time zone.
func Render(w io.Writer, style cli.Style, answer *Answer, location *time.Location) error {
	p := &printer{style: style, location: location}
	for i, report := range answer.Volumes {
		if i > 0 {
			p.line("")
		}
		p.report(report)
	}
	if len(answer.Volumes) == 0 {
		p.line(style.Bold(answer.Subject) + " uses no PaV volume")
	}
	for _, other := range answer.Others {
		p.line(style.Dim("not shown: " + other))
	}
	if _, err := io.WriteString(w, p.text.String()); err != nil {
		return fmt.Errorf("writing the description: %w", err)
	}
	return nil
}

// printer collects lines.
type printer struct {
	style    cli.Style
	location *time.Location
	text     strings.Builder
}

func (p *printer) line(text string) {
	p.text.WriteString(strings.TrimRight(text, " "))
	p.text.WriteByte('\n')
}

// table writes a table to the text, which cannot fail.
func (p *printer) table(table *cli.Table) { _ = table.Write(&p.text, "  ") }

// paint colours text by a state.
func (p *printer) paint(state State, text string) string {
	switch state {
	case Failing:
		return p.style.Bad(text)
	case Waiting, Slow:
		return p.style.Warn(text)
	case Healthy:
		return p.style.Good(text)
	case Working:
	}
	return text
}

func (p *printer) report(r *Report) {
	p.line(p.style.Bold(title(r)) + ": " + p.paint(r.State, strings.ToUpper(string(r.State))))
	for i := range r.Findings {
		p.finding(&r.Findings[i])
	}
	p.line("")
	table := &cli.Table{}
	for _, d := range r.Details {
		table.Row(p.style.Dim(d.Name), p.paint(d.State, cli.Plain(d.Value)))
	}
	p.table(table)
	p.timeline(r.Timeline)
	p.log(r.Log)
	p.next(r.Findings)
	if len(r.Hidden) > 0 {
		p.line("")
		p.line(p.style.Dim("Not shown, because you may not read them: " + strings.Join(r.Hidden, ", ") + "."))
	}
}

func title(r *Report) string {
	switch {
	case r.Access != "":
		return "Access " + qualified(r.Namespace, r.Access)
	case r.Bucket != "" && r.Namespace != "":
		return "Bucket of claim " + qualified(r.Namespace, r.Bucket)
	case r.Bucket != "":
		return "Bucket " + r.Bucket
	case r.Snapshot != "" && r.Namespace != "":
		return fmt.Sprintf("Snapshot %s/%s", r.Namespace, r.Snapshot)
	case r.Snapshot != "":
		return "Snapshot " + r.Snapshot
	}
	if r.Claim != "" {
		return fmt.Sprintf("Claim %s/%s", r.Namespace, r.Claim)
	}
	if r.Volume == "" {
		return "PavProvisioner " + r.Provisioner
	}
	return "Volume " + r.Volume
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (p *printer) finding(f *Finding) {
	p.line("  " + p.paint(f.State, cli.Plain(oneLine(f.Summary))))
	if f.Reason != "" {
		for line := range strings.SplitSeq(strings.TrimSpace(cli.Plain(f.Reason)), "\n") {
			p.line("    " + line)
		}
	}
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " | ") }

// longGap is the time without entries after which the date is written again.
const longGap = 24 * time.Hour

func (p *printer) timeline(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	p.line("")
	p.line(p.style.Bold("Timeline") + p.style.Dim(", since "+entries[0].Time.In(p.location).Format("Monday, 2 January 2006")))
	table := &cli.Table{}
	before := entries[0].Time.Time
	for i := range entries {
		e := &entries[i]
		layout := "15:04:05"
		if e.Time.In(p.location).YearDay() != entries[0].Time.In(p.location).YearDay() || e.Time.Sub(before) > longGap {
			layout = "2 Jan 15:04:05"
		}
		table.Row(p.style.Dim(e.Time.In(p.location).Format(layout)), p.duration(e), cli.Plain(e.Object), p.what(e))
		before = e.Time.Time
	}
	p.table(table)
}

// duration returns the duration of the step that an entry ends. Kubernetes records whole seconds, so a duration of
// zero is left out.
func (p *printer) duration(e *Entry) string {
	if e.Duration == nil || e.Duration.Duration < time.Second {
		return ""
	}
	return cli.Duration(e.Duration.Duration) + " " + p.style.Dim(e.Of)
}

func (p *printer) what(e *Entry) string {
	text := p.paint(e.State, cli.Plain(oneLine(e.What)))
	if e.Count > 1 && e.First != nil {
		text += p.style.Dim(fmt.Sprintf(" (%d times since %s)", e.Count, e.First.In(p.location).Format("15:04:05")))
	}
	return text
}

func (p *printer) log(log *Log) {
	if log == nil {
		return
	}
	what := fmt.Sprintf("pod %s/%s", log.Namespace, log.Name)
	if log.Container != "" {
		what += ", container " + log.Container
	}
	if log.Previous {
		what += ", before it was restarted"
	}
	p.line("")
	p.line(p.style.Bold("Log") + p.style.Dim(", the last lines of "+what))
	for _, line := range log.Lines {
		p.line("  " + p.style.Dim("|") + " " + cli.Plain(line))
	}
}

// next writes the steps to take, those of the worst finding first, and each command once.
func (p *printer) next(findings []Finding) {
	seen := map[Step]bool{}
	head := false
	for i := range findings {
		for _, step := range findings[i].Next {
			if seen[step] {
				continue
			}
			seen[step] = true
			if !head {
				head = true
				p.line("")
				p.line(p.style.Bold("Next:"))
			}
			text := "  " + cli.Plain(oneLine(step.Text))
			if step.Command == "" {
				p.line(text)
				continue
			}
			p.line(text + ":")
			p.line("    " + p.style.Bold(cli.Plain(oneLine(step.Command))))
		}
	}
}
