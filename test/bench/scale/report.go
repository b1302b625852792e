package main

import (
	"fmt"
	"io"
	"time"
)

// report writes what was measured, as Markdown.
type report struct{ out io.Writer }

func (r *report) linef(format string, values ...any) {
	_, _ = fmt.Fprintf(r.out, format+"\n", values...)
}

func (r *report) head() {
	r.linef("\n| state | process | requests/s | KiB/s | resident MiB | heap MiB |\n|---|---|---|---|---|---|")
}

// row writes what a process used from one moment to another, divided by the number of agents that it stands for.
func (r *report) row(state, process string, before, after usage, took time.Duration, agents int) {
	each := took.Seconds() * float64(agents)
	r.linef("| %s | %s | %.2f | %.1f | %.1f | %.1f |", state, process,
		float64(after.Requests-before.Requests)/each, float64(after.Bytes-before.Bytes)/1024/each,
		mebibytes(after.Resident)/float64(agents), mebibytes(after.Heap)/float64(agents))
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
