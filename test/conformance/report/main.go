// Command conformance-report summarises reports of Kubernetes' external-storage suite for a driver. It fails if a spec
// failed, or if the numbers of specs differ from the recorded ones.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/albertofaria/pav/test/conformance/internal/summary"
)

// settings are the parsed command line arguments.
type settings struct {
	driver, expected, commit, output string
	record, partial, failed          bool
	reports                          []string
}

func main() {
	s, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(s, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance-report:", err)
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (settings, error) {
	s := settings{}
	flags := flag.NewFlagSet("conformance-report", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(out, "Usage: conformance-report --driver FILE {--expected FILE [--record] | --partial | --failed} [FLAGS] REPORT.json…")
		flags.PrintDefaults()
	}
	flags.StringVar(&s.driver, "driver", "", "the driver definition that the suite was given")
	flags.StringVar(&s.expected, "expected", "", "the recorded numbers of specs")
	flags.BoolVar(&s.record, "record", false, "write the recorded numbers instead of comparing with them")
	flags.BoolVar(&s.partial, "partial", false, "compare no numbers: a focus has left specs out")
	flags.BoolVar(&s.failed, "failed", false, "only list the specs that failed, as regular expressions for Ginkgo's focus, one a line")
	flags.StringVar(&s.commit, "commit", "", "the commit that the run was of")
	flags.StringVar(&s.output, "output", "", "also write the summary into this file")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.reports = flags.Args()
	return s, s.check()
}

func (s settings) check() error {
	switch {
	case s.driver == "":
		return errors.New("--driver is missing")
	case len(s.reports) == 0:
		return errors.New("no report is given")
	case s.record && s.partial:
		return errors.New("--record and --partial exclude each other: a part says nothing about the whole")
	case s.expected == "" && (s.record || !s.partial && !s.failed):
		return errors.New("--expected is missing; a run with a focus needs --partial instead")
	}
	return nil
}

// run writes the summary, or the list of failed specs. It returns an error if the run has failures or differs from the
// record.
func run(s settings, out io.Writer) error {
	data, err := os.ReadFile(s.driver)
	if err != nil {
		return err
	}
	driver, err := summary.ReadDriver(data)
	if err != nil {
		return fmt.Errorf("%s: %w", s.driver, err)
	}
	reports, err := readReports(s.reports)
	if err != nil {
		return err
	}
	merged, err := summary.Merge(driver.Name, reports)
	if err != nil {
		return err
	}
	if s.failed {
		for _, focus := range summary.Focus(merged) {
			if _, err := fmt.Fprintln(out, focus); err != nil {
				return err
			}
		}
		return nil
	}
	// The summary is written even if the record cannot be read.
	differences, unread := compare(s, merged)
	return errors.Join(write(s, out, summary.Markdown(driver, merged, s.commit, differences)), unread, finish(s, merged, differences))
}

func readReports(files []string) ([]types.Report, error) {
	var all []types.Report
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var reports []types.Report
		if err := json.Unmarshal(data, &reports); err != nil {
			return nil, fmt.Errorf("reading report %s: %w", file, err)
		}
		if len(reports) == 0 {
			return nil, fmt.Errorf("report %s is empty: the suite ended before it could write one", file)
		}
		all = append(all, reports...)
	}
	return all, nil
}

func compare(s settings, merged summary.Run) ([]string, error) {
	if s.partial || s.record {
		return nil, nil
	}
	data, err := os.ReadFile(s.expected)
	if err != nil {
		return nil, fmt.Errorf("%w; --record makes it", err)
	}
	record, err := summary.ReadRecord(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.expected, err)
	}
	return record.Differences(merged.Record()), nil
}

func write(s settings, out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if s.output == "" {
		return nil
	}
	return os.WriteFile(s.output, []byte(text), 0o644)
}

// finish returns the problems of the run as one error, or records the run's numbers.
func finish(s settings, merged summary.Run, differences []string) error {
	var wrong []error
	if failed := merged.In(summary.Failed); len(failed) > 0 {
		wrong = append(wrong, fmt.Errorf("specs that failed: %d", len(failed)))
	}
	for _, problem := range merged.Problems {
		wrong = append(wrong, errors.New(problem))
	}
	if len(differences) > 0 {
		wrong = append(wrong, fmt.Errorf("other numbers of specs than recorded in %s:\n%s\n%s",
			s.expected, strings.Join(differences, "\n"), summary.Hint))
	}
	if s.partial && len(merged.In(summary.LeftOut)) == len(merged.Specs) {
		wrong = append(wrong, errors.New("the focus matches no spec"))
	}
	if !s.record {
		return errors.Join(wrong...)
	}
	if len(wrong) > 0 {
		return errors.Join(append(wrong, errors.New("not recorded: only a run without failures is"))...)
	}
	return os.WriteFile(s.expected, merged.Record().Bytes(), 0o644)
}
