package lint

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/source"
)

// Finding is an error or a warning about a file.
type Finding struct {
	// File is the name of the file. Line and Column count from 1, columns in characters.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`

	Severity definition.Severity `json:"severity"`

	// Provisioner is the name of the PavProvisioner, and Field the path in it; both are "" if the finding is about
	// something else.
	Provisioner string `json:"provisioner,omitempty"`
	Field       string `json:"field,omitempty"`

	Message string `json:"message"`

	// text is the line in the file.
	text string
}

// At returns a finding about a field of a document. line and column are a position in the field's text, or 0.
func At(d source.Document, f definition.Finding) Finding {
	found := Finding{File: d.File, Severity: f.Severity, Provisioner: d.Name(), Field: f.Field, Message: f.Message}
	found.Line, found.Column = d.Position(f.Field, f.Key, f.Line, f.Column)
	found.text = d.Line(found.Line)
	return found
}

// Broken returns a finding about a file or document that cannot be read.
func Broken(err *source.Error) Finding {
	return Finding{File: err.File, Line: err.Line, Column: err.Column, Severity: definition.Error, Message: err.Message, text: err.Text}
}

// Is reports whether the document is, or is meant to be, a PavProvisioner.
func Is(d source.Document) bool {
	const kind = "PavProvisioner"
	if strings.EqualFold(d.Kind(), kind) {
		return true
	}
	return d.Group() == group && !slices.Contains([]string{"PavVolume", "PavStage", "PavSnapshot", "PavBucket", "PavBucketAccess"}, d.Kind())
}

// Print writes findings for people; on a terminal, with the line of the file that each is about.
func Print(w io.Writer, style cli.Style, excerpts bool, findings []Finding) error {
	for _, f := range findings {
		severity := style.Bad(string(f.Severity))
		if f.Severity == definition.Warning {
			severity = style.Warn(string(f.Severity))
		}
		about := ""
		if f.Field != "" {
			about = cli.Plain(f.Field) + ": "
		}
		text := fmt.Sprintf("%s %s: %s%s\n", style.Bold(fmt.Sprintf("%s:%d:%d:", f.File, f.Line, f.Column)), severity, about, cli.Plain(f.Message))
		if excerpts {
			text += excerpt(style, f)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("writing the findings: %w", err)
		}
	}
	return nil
}

// The maximum number of characters of a line that are shown, and of those before the position if the line is longer.
const (
	shown  = 100
	before = 60
)

// excerpt returns the line that a finding is about, and a second line that marks the position.
func excerpt(style cli.Style, f Finding) string {
	text := []rune(f.text)
	at := min(f.Column-1, len(text))
	mark := strings.Repeat("^", max(1, wordLength(text[at:])))
	from := 0
	if at > shown {
		from = at - before
	}
	to := min(len(text), from+shown)
	line := cli.Plain(string(text[from:to]))
	indent := cli.Width(cli.Plain(string(text[from:at])))
	if from > 0 {
		line, indent = "…"+line, indent+1
	}
	if to < len(text) {
		line += "…"
	}
	mark = mark[:min(len(mark), max(1, to-at))]
	number := fmt.Sprintf("%5d | ", f.Line)
	margin := strings.Repeat(" ", len(number)-2) + "| "
	colour := style.Bad
	if f.Severity == definition.Warning {
		colour = style.Warn
	}
	return style.Dim(number) + line + "\n" + style.Dim(margin) + strings.Repeat(" ", indent) + colour(mark) + "\n"
}

// wordLength returns the number of characters of the first word of a text.
func wordLength(text []rune) int {
	for i, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' {
			return i
		}
	}
	return len(text)
}
