package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// picture is a terminal with a command and its output.
type picture struct {
	// file is its name in docs/pictures, and title what it is called where it is not shown.
	file, title string

	// command is what the user wrote.
	command string

	// colour adds colours to the output of the command in the transcripts; nil for a command that needs no cluster and
	// is run.
	colour func(string) string
}

var pictures = []picture{
	{"describe.svg", "kubectl pav describe, of a claim whose creation pod fails", "kubectl pav describe pvc/full -n transcripts", colourDescription},
	{"test.svg", "kubectl pav test, of a provisioner that works", "kubectl pav test test/demo/transcripts.d/provisioner.yaml --size 1Mi --name transcripts-test", colourTest},
	{"lint.svg", "kubectl pav lint, of a definition with mistakes", "kubectl pav lint test/demo/transcripts.d/mistakes.yaml", nil},
}

func main() {
	if err := run("docs/transcripts.md", "docs/pictures"); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run writes all pictures to a directory, from a page of transcripts.
func run(transcripts, directory string) error {
	page, err := os.ReadFile(transcripts) //nolint:gosec // The path is that of a documentation page.
	if err != nil {
		return fmt.Errorf("reading the transcripts: %w", err)
	}
	for i := range pictures {
		p := &pictures[i]
		output, err := p.output(string(page))
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		svg, err := draw(p.title, p.command, output)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(directory, p.file), []byte(svg), 0o644); err != nil { //nolint:gosec // Documentation is public.
			return fmt.Errorf("writing the picture: %w", err)
		}
	}
	return nil
}

// output returns what the command prints on a terminal.
func (p *picture) output(page string) (string, error) {
	if p.colour == nil {
		return onTerminal(p.command)
	}
	output, err := recorded(page, p.command)
	return p.colour(output), err
}
