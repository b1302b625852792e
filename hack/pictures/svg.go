package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The size of the screen in columns, and the sizes of a character, a line and the margin in units of the picture.
const (
	columns   = 110
	charWidth = 7.8
	lineSize  = 18
	margin    = 16
)

const style = `
    rect { fill: #f6f8fa; stroke: #d0d7de }
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; fill: #1f2328 }
    .bold { font-weight: 600 }
    .dim { fill: #59636e }
    .bad { fill: #b3261e }
    .good { fill: #1a7f37 }
    .warn { fill: #8a5700 }
    @media (prefers-color-scheme: dark) {
      rect { fill: #161b22; stroke: #3d444d }
      text { fill: #e6edf3 }
      .dim { fill: #9da7b1 }
      .bad { fill: #ff7b72 }
      .good { fill: #56d364 }
      .warn { fill: #e3b341 }
    }
  `

// draw returns a terminal with a command and its output as SVG. Each span is placed and stretched to its columns, so
// that columns stay aligned with any font.
func draw(title, command, output string) (string, error) {
	screen, err := layOut(colours.Dim("$")+" "+colours.Bold(command)+"\n"+output, columns)
	if err != nil {
		return "", err
	}
	width, height := 2*margin+int(columns*charWidth), 2*margin+len(screen)*lineSize
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title">`+"\n", width, height)
	fmt.Fprintf(&svg, "  <title id=\"title\">%s</title>\n  <style>%s</style>\n", escaped(title), style)
	fmt.Fprintf(&svg, `  <rect x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for i, line := range screen {
		for _, s := range line {
			class := ""
			if s.style != "" {
				class = fmt.Sprintf(` class="%s"`, s.style)
			}
			fmt.Fprintf(&svg, `  <text x="%.1f" y="%d" textLength="%.1f"%s>%s</text>`+"\n",
				margin+float64(s.column)*charWidth, margin+i*lineSize+13, float64(s.width)*charWidth, class, escaped(s.text))
		}
	}
	svg.WriteString("</svg>\n")
	return svg.String(), nil
}

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a strings.Builder does not fail
	return out.String()
}
