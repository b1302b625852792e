package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// table is a text table, whose cells are separated by tabs.
type table struct {
	writer *tabwriter.Writer
	err    error
}

func newTable(out io.Writer) *table {
	return &table{writer: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// rowf adds a row. Its error is returned by end.
func (t *table) rowf(format string, args ...any) {
	if _, err := fmt.Fprintf(t.writer, format+"\n", args...); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) end() error { return errors.Join(t.err, t.writer.Flush()) }
