// Command dashboard draws a Grafana dashboard to one picture: it takes the panels and queries of the
// dashboard's JSON, and the data of a Prometheus. It knows of Grafana what PaV's dashboard uses, and no
// more: panels of the types row, stat and timeseries, with lines that may be stacked.
//
// It fails where a query is refused, and names the queries that have no data.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run() error {
	file := flag.String("dashboard", "examples/monitoring/dashboard.json", "the dashboard")
	server := flag.String("prometheus", "http://127.0.0.1:9090", "the Prometheus")
	out := flag.String("out", "dashboard.png", "the picture")
	length := flag.Duration("range", 10*time.Minute, "how long a time is drawn")
	window := flag.Duration("window", time.Minute, "the value of $__rate_interval")
	end := flag.Int64("end", 0, "where the time ends, in seconds since 1970; 0 for now")
	flag.Parse()
	until := time.Now()
	if *end != 0 {
		until = time.Unix(*end, 0)
	}
	board, err := read(*file)
	if err != nil {
		return err
	}
	source := source{server: *server, end: until, length: *length, window: *window}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for i := range board.Panels {
		errs = append(errs, board.Panels[i].load(ctx, source))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return draw(board, source, *out)
}

// board is a dashboard, as far as it is drawn.
type board struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
	Field   struct {
		Defaults struct {
			Unit   string
			Custom struct{ Stacking struct{ Mode string } }
		}
		// Overrides are for dashes.
		Overrides []struct{ Matcher struct{ ID, Options string } }
	} `json:"fieldConfig"`

	lines []line // what its queries say
}

// line is one series.
type line struct {
	name   string
	points []point
}

type point struct{ seconds, value float64 }

func read(file string) (*board, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := &board{}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return b, nil
}

// load asks the panel's queries.
func (p *panel) load(ctx context.Context, from source) error {
	for _, target := range p.Targets {
		lines, err := from.ask(ctx, target.Expr)
		if err != nil {
			return fmt.Errorf("panel %q: %s: %w", p.Title, target.Expr, err)
		}
		if len(lines) == 0 {
			fmt.Printf("panel %q has no data: %s\n", p.Title, target.Expr)
		}
		for _, l := range lines {
			p.lines = append(p.lines, line{name: legend(target.LegendFormat, l.labels), points: l.points})
		}
	}
	return nil
}

// legend fills in the labels of a series.
func legend(format string, labels map[string]string) string {
	for name, value := range labels {
		format = strings.ReplaceAll(format, "{{"+name+"}}", value)
	}
	return strings.TrimSpace(format)
}
