package main

import (
	"fmt"
	"strings"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// span is a piece of a line in one style, without two spaces side by side. Columns count from 0.
type span struct {
	column, width int
	text, style   string
}

// cell is a character on the screen.
type cell struct {
	text  string
	width int
	style string
}

// styles are the classes of the codes that kubectl pav uses.
var styles = map[string]string{"1": "bold", "2": "dim", "31": "bad", "32": "good", "33": "warn"}

// layOut returns the lines of a screen with so many columns, and breaks longer lines as a terminal does. It fails if
// the text has a control sequence that kubectl pav does not use.
func layOut(text string, columns int) ([][]span, error) {
	var screen [][]span
	style := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		var cells []cell
		column := 0
		for line != "" {
			code, rest, err := control(line)
			if err != nil {
				return nil, err
			}
			if code != "" {
				style, line = styles[code], rest
				continue
			}
			c := character(line, style)
			line = line[len(c.text):]
			if column+c.width > columns {
				screen = append(screen, spans(cells))
				cells, column = nil, 0
			}
			cells, column = append(cells, c), column+c.width
		}
		screen = append(screen, spans(cells))
	}
	return screen, nil
}

// control returns the code of the control sequence that a text begins with, and what follows; "" if it begins with
// a character.
func control(text string) (code, rest string, err error) {
	if text[0] >= ' ' && text[0] != 0x7f {
		return "", text, nil
	}
	if sequence, ok := strings.CutPrefix(text, "\x1b["); ok {
		code, rest, _ = strings.Cut(sequence, "m")
		if code == "0" || styles[code] != "" {
			return code, rest, nil
		}
	}
	return "", "", fmt.Errorf("unknown control sequence in %q", text)
}

// character returns the first character of a text.
func character(text, style string) cell {
	first := text
	for i := range text {
		if i > 0 {
			first = text[:i]
			break
		}
	}
	return cell{text: first, width: cli.Width(first), style: style}
}

// spans joins the cells of a line that have one style. Gaps of spaces are left out, so that no viewer can join them.
func spans(cells []cell) []span {
	var all []span
	column, gap := 0, 0
	for i, c := range cells {
		if c.text == " " {
			gap++
			column++
			continue
		}
		last := len(all) - 1
		if last >= 0 && gap <= 1 && all[last].style == c.style && (gap == 0 || cells[i-1].style == c.style) {
			all[last].text += strings.Repeat(" ", gap) + c.text
			all[last].width += gap + c.width
		} else {
			all = append(all, span{column: column, width: c.width, text: c.text, style: c.style})
		}
		gap = 0
		column += c.width
	}
	return all
}
