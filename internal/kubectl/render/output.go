package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// write writes the rendering as YAML documents, each after comments that describe it.
func write(w io.Writer, style cli.Style, head []string, result Result) error {
	var out strings.Builder
	for _, line := range head {
		comment(&out, style, line)
	}
	for i, phase := range result.Phases {
		if i > 0 || len(head) > 0 {
			out.WriteString("---\n")
		}
		if err := phase.write(&out, style); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (p *Phase) write(out *strings.Builder, style cli.Style) error {
	title := p.Phase
	switch {
	case p.Refusal != "":
		title += ": refused: " + cli.Plain(p.Refusal)
	case p.Pod == nil:
		title += ": no pod"
	}
	out.WriteString(style.Bold("# "+title) + "\n")
	for _, note := range p.Notes {
		comment(out, style, note)
	}
	for _, line := range p.volume() {
		comment(out, style, line)
	}
	if p.Pod == nil {
		return nil
	}
	text, err := yaml.Marshal(p.Pod)
	if err != nil {
		return fmt.Errorf("writing the pod of %s: %w", p.Phase, err)
	}
	out.Write(text)
	return nil
}

// text returns what write writes, without colours; "" for nil.
func (p *Phase) text() (string, error) {
	if p == nil {
		return "", nil
	}
	var out strings.Builder
	err := p.write(&out, cli.Style{})
	return out.String(), err
}

// volume describes the volume after creation.
func (p *Phase) volume() []string {
	var lines []string
	if p.Handle != "" {
		lines = append(lines, fmt.Sprintf("handle: %q", p.Handle))
	}
	if p.Capacity != "" {
		lines = append(lines, "capacity: "+p.Capacity)
	}
	for _, labels := range p.AccessibleTopology {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, key+"="+labels[key])
		}
		lines = append(lines, "accessible from nodes with "+strings.Join(pairs, ", "))
	}
	return lines
}

func comment(out *strings.Builder, style cli.Style, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		out.WriteString(style.Dim("# "+cli.Plain(line)) + "\n")
	}
}
