package summary

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
)

const (
	block = "[Testpattern: Dynamic PV (block volmode)] provisioning"
	slow  = "[Testpattern: Dynamic PV (xfs)] [Slow] multiVolume [Slow]"
)

// spec returns the report of one invocation on a spec of the driver "shared".
func spec(container, text string, state types.SpecState, change ...func(*types.SpecReport)) types.SpecReport {
	report := types.SpecReport{
		ContainerHierarchyTexts: []string{"External Storage [Driver: shared]", container},
		LeafNodeType:            types.NodeTypeIt,
		LeafNodeText:            text,
		State:                   state,
	}
	if state.Is(types.SpecStatePassed | types.SpecStateFailureStates) {
		report.NumAttempts, report.RunTime = 1, 2*time.Second
	}
	for _, c := range change {
		c(&report)
	}
	return report
}

func because(message string) func(*types.SpecReport) {
	return func(r *types.SpecReport) {
		r.Failure = types.Failure{Message: message, Location: types.CodeLocation{
			FileName: "/home/x/go/pkg/mod/k8s.io/kubernetes@v1.36.3/test/e2e/storage/testsuites/subpath.go", LineNumber: 12}}
	}
}

// invocation returns a report of an invocation that started at the given hour and took one minute.
func invocation(hour, processes int, specs ...types.SpecReport) types.Report {
	report := types.Report{
		SuiteSucceeded: true,
		StartTime:      time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC),
		RunTime:        time.Minute,
		SuiteConfig:    types.SuiteConfig{ParallelTotal: processes},
		SpecReports:    specs,
	}
	for _, s := range specs {
		report.SuiteSucceeded = report.SuiteSucceeded && !s.Failed()
	}
	return report
}

func merge(t *testing.T, reports ...types.Report) Run {
	t.Helper()
	run, err := Merge("shared", reports)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestMerge_ASpecIsWhatTheInvocationThatSelectedItSays(t *testing.T) {
	left := spec(block, "works", types.SpecStateSkipped)
	skipped := spec(block, "works", types.SpecStateSkipped, because("Driver \"shared\" does not support cloning - skipping"))
	passed := spec(block, "works", types.SpecStatePassed)
	failed := spec(block, "works", types.SpecStateFailed, because("it broke"))
	for name, test := range map[string]struct {
		first, second types.SpecReport
		want          Spec
	}{
		"in neither":            {left, left, Spec{}},
		"pending":               {left, spec(block, "works", types.SpecStatePending), Spec{}},
		"in the first":          {passed, left, Spec{Result: Passed, Attempts: 1, Time: 2 * time.Second}},
		"in the second":         {left, passed, Spec{Result: Passed, Attempts: 1, Time: 2 * time.Second}},
		"skipped by the suite":  {left, skipped, Spec{Result: Skipped, Reason: "Driver does not support cloning"}},
		"failed":                {left, failed, Spec{Result: Failed, Failure: "it broke", Location: "test/e2e/storage/testsuites/subpath.go:12", Attempts: 1, Time: 2 * time.Second}},
		"repeated with success": {passed, passed, Spec{Result: Passed, Attempts: 2, Time: 4 * time.Second}},
		"failed, then passed":   {failed, passed, Spec{Result: Failed, Failure: "it broke", Location: "test/e2e/storage/testsuites/subpath.go:12", Attempts: 2, Flaky: true, Time: 4 * time.Second}},
		"passed, then failed":   {passed, failed, Spec{Result: Failed, Failure: "it broke", Location: "test/e2e/storage/testsuites/subpath.go:12", Attempts: 2, Flaky: true, Time: 4 * time.Second}},
		"retried by Ginkgo": {left, spec(block, "works", types.SpecStatePassed, func(r *types.SpecReport) { r.NumAttempts = 3 }),
			Spec{Result: Passed, Attempts: 3, Flaky: true, Time: 2 * time.Second}},
		"not ended": {left, spec(block, "works", types.SpecStateInvalid),
			Spec{Result: Failed, Failure: "INVALID SPEC STATE", Location: "nowhere", Attempts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Name = "External Storage [Driver: shared] " + block + " works"
			test.want.Suite, test.want.Pattern = "provisioning", "Dynamic PV (block volmode)"
			run := merge(t, invocation(8, 4, test.first), invocation(9, 1, test.second))
			if diff := cmp.Diff([]Spec{test.want}, run.Specs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge_SuitesAndPatternsAreReadFromNames(t *testing.T) {
	for container, want := range map[string][2]string{
		block: {"provisioning", "Dynamic PV (block volmode)"},
		slow:  {"multiVolume", "Dynamic PV (xfs)"},
		"[Testpattern: CSI Ephemeral-volume (ntfs) [alpha]] [Feature:Windows] volumes":                         {"volumes", "CSI Ephemeral-volume (ntfs) [alpha]"},
		"[Testpattern:  (delete policy)] volumegroupsnapshottable [Feature:volumegroupsnapshot]":               {"volumegroupsnapshottable", "(delete policy)"},
		"[Testpattern: Dynamic PV (ntfs)(allowExpansion)] [Feature:Windows] volume-expand":                     {"volume-expand", "Dynamic PV (ntfs)(allowExpansion)"},
		"[Testpattern: Generic Ephemeral-volume (default fs) (late-binding)] ephemeral":                        {"ephemeral", "Generic Ephemeral-volume (default fs) (late-binding)"},
		"[Testpattern: Dynamic PV (default fs)] seLinuxMount [Feature:SELinux] [FeatureGate:SELinuxMount] Pod": {"seLinuxMount", "Dynamic PV (default fs)"},
		"what has no pattern": {"other", ""},
	} {
		run := merge(t, invocation(8, 1, spec(container, "works", types.SpecStatePassed)))
		if got := [2]string{run.Specs[0].Suite, run.Specs[0].Pattern}; got != want {
			t.Errorf("%s: got %q, want %q", container, got, want)
		}
	}
}

func TestMerge_OnlySpecsOfTheDriverCount(t *testing.T) {
	other := spec(block, "works", types.SpecStatePassed, func(r *types.SpecReport) {
		r.ContainerHierarchyTexts[0] = "[sig-node] Pods"
	})
	run := merge(t, invocation(8, 1, other, spec(block, "works", types.SpecStatePassed)))
	if len(run.Specs) != 1 {
		t.Errorf("got %d specs", len(run.Specs))
	}
	if _, err := Merge("block", []types.Report{invocation(8, 1, other, spec(block, "works", types.SpecStatePassed))}); err == nil ||
		err.Error() != `no spec of driver "block" in the reports; they are of drivers ["shared"]` {
		t.Errorf("got %v", err)
	}
}

func TestMerge_WhatGoesWrongOutsideSpecsIsAProblem(t *testing.T) {
	passed := spec(block, "works", types.SpecStatePassed)
	before := types.SpecReport{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStateFailed,
		Failure: types.Failure{Message: "no cluster", Location: types.CodeLocation{FileName: "/home/x/suite/suite_test.go", LineNumber: 3}}}
	interrupted, silent := invocation(8, 1, passed), invocation(8, 1, passed)
	interrupted.SuiteSucceeded, interrupted.SpecialSuiteFailureReasons = false, []string{"Interrupted by Timeout"}
	silent.SuiteSucceeded = false
	for name, test := range map[string]struct {
		report types.Report
		want   []string
	}{
		"nothing":                 {invocation(8, 1, passed), nil},
		"a spec that failed":      {invocation(8, 1, spec(block, "works", types.SpecStateFailed)), nil},
		"what precedes all specs": {invocation(8, 1, passed, before), []string{"SynchronizedBeforeSuite \nsuite/suite_test.go:3: no cluster"}},
		"an interruption":         {interrupted, []string{"The invocation: Interrupted by Timeout"}},
		"what is not explained":   {silent, []string{"An invocation did not succeed, and none of its specs says why."}},
	} {
		if diff := cmp.Diff(test.want, merge(t, test.report).Problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReason(t *testing.T) {
	for message, want := range map[string]string{
		`Driver "shared" does not support snapshotting - skipping`:                                        `Driver does not support snapshotting`,
		`Driver shared doesn't support Block -- skipping`:                                                 `Driver doesn't support Block`,
		`Driver "shared" does not support volume type "InlineVolume" - skipping`:                          `Driver does not support volume type "InlineVolume"`,
		`driver shared does not support volume limits`:                                                    `Driver does not support volume limits`,
		`shared does not have any InlineVolumeAttributes defined`:                                         `Driver does not have any InlineVolumeAttributes defined`,
		`Driver shared does not support reconstruction, skipping`:                                         `Driver does not support reconstruction`,
		`Driver shared on volume type DynamicPV doesn't support readOnly source`:                          `Driver on volume type DynamicPV doesn't support readOnly source`,
		`Volumes are shared between pods -- skipping`:                                                     `Volumes are shared between pods`,
		`Driver shared-too does not support exec - skipping`:                                              `Driver shared-too does not support exec`,
		`skipping multiple PV mount test for block mode`:                                                  `skipping multiple PV mount test for block mode`,
		"Driver supports dynamic provisioning, skipping PreprovisionedPV pattern\nand another line of it": `Driver supports dynamic provisioning, skipping PreprovisionedPV pattern`,
	} {
		if got := reason(message, "shared"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"\n  one   line\nand another":           "one line",
		"Expected\n    <bool>: false":           "Expected",
		"failed to start:\n\n  timed out\nmore": "failed to start: timed out",
		strings.Repeat("é", 301):                strings.Repeat("é", 300) + "…",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFailure(t *testing.T) {
	long := strings.Repeat("é", maxFailure)
	for name, test := range map[string]struct {
		failure types.Failure
		want    string
	}{
		"of a command": {types.Failure{Message: "error running kubectl:\nCommand stdout:\n\nstderr:\n  unexpected EOF \n"}, "error running kubectl:\nCommand stdout:\nstderr:\n  unexpected EOF"},
		"a panic":      {types.Failure{Message: "Test Panicked", ForwardedPanic: "nil map"}, "Test Panicked\nnil map"},
		"a long one":   {types.Failure{Message: long + "è"}, long + "…"},
		"without text": {types.Failure{}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failure(types.SpecReport{State: types.SpecStateFailed, Failure: test.failure}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDifferences_EachSuiteWithOtherNumbersIsNamed(t *testing.T) {
	record := Record{Suites: map[string]Recorded{"provisioning": {12, 40}, "subPath": {18, 0}, "volumes": {2, 1}}}
	now := Record{Suites: map[string]Recorded{"provisioning": {12, 40}, "subPath": {2, 16}, "volume-expand": {1, 0}}}
	want := []string{
		"Suite subPath: recorded 18 specs that ran and 0 skipped, now 2 and 16.",
		"Suite volume-expand: recorded 0 specs that ran and 0 skipped, now 1 and 0.",
		"Suite volumes: recorded 2 specs that ran and 1 skipped, now 0 and 0.",
	}
	if diff := cmp.Diff(want, record.Differences(now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := record.Differences(record); got != nil {
		t.Errorf("a record differs from itself: %q", got)
	}
}

func TestRecord_IsReadAsItWasWritten(t *testing.T) {
	run := merge(t, invocation(8, 1,
		spec(block, "works", types.SpecStatePassed),
		spec(block, "breaks", types.SpecStateFailed),
		spec(slow, "is none", types.SpecStateSkipped, because("no")),
		spec("[Testpattern: Dynamic PV (default fs)] capacity", "is left out", types.SpecStateSkipped)))
	want := `# How many specs of each suite run and are skipped: written with conformance-report --record.
suites:
  multiVolume: {passed: 0, skipped: 1}
  provisioning: {passed: 2, skipped: 0}
`
	written := run.Record().Bytes()
	if diff := cmp.Diff(want, string(written)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	read, err := ReadRecord(written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run.Record(), read); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if _, err := ReadRecord([]byte("suites: {volumes: {failed: 1}}")); err == nil {
		t.Error("an unknown key is no error")
	}
}

const definition = `
StorageClass: {FromExistingClassName: shared}
DriverInfo:
  Name: shared
  SupportedFsType: {"": {}, ext4: {}}
  MaxFileSize: 104857600
  TopologyKeys: [kubernetes.io/hostname]
  Capabilities: {persistence: true, RWX: true, block: false}
  StressTestOptions: {NumPods: 10, NumRestarts: 3}
InlineVolumes: [{Shared: true}]
`

func TestReadDriver(t *testing.T) {
	got, err := ReadDriver([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	want := Driver{Name: "shared", Capabilities: []string{"RWX", "persistence"}, Others: []string{
		"InlineVolumes: Shared true",
		"MaxFileSize: 104857600",
		"StorageClass: FromExistingClassName shared",
		"StressTestOptions: NumPods 10, NumRestarts 3",
		"SupportedFsType: (default), ext4",
		"TopologyKeys: kubernetes.io/hostname",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, wrong := range []string{"DriverInfo: [", "DriverInfo: {Capabilities: {block: true}}"} {
		if _, err := ReadDriver([]byte(wrong)); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

func TestMarkdown(t *testing.T) {
	run := merge(t,
		invocation(9, 1, spec(slow, "survives", types.SpecStatePassed, func(r *types.SpecReport) { r.NumAttempts = 2 })),
		invocation(8, 4,
			spec(slow, "survives", types.SpecStateSkipped),
			spec(block, "works", types.SpecStatePassed),
			spec(block, "breaks", types.SpecStateFailed, because("it broke | badly:\n  twice")),
			spec(block, "clones", types.SpecStateSkipped, because(`Driver "shared" does not support cloning - skipping`)),
			spec(slow, "clones", types.SpecStateSkipped, because(`Driver "shared" does not support cloning - skipping`)),
			spec(slow, "is raw", types.SpecStateSkipped, because("Driver shared doesn't support Block | File -- skipping")),
			spec(block, "is left out", types.SpecStateSkipped)))
	run.Problems = []string{"The invocation: Interrupted by User"}
	want := `## shared

| Passed | Failed | Skipped | Left out | Time taken | Sum of specs | Processes | Commit  | Date                 |
| -----: | -----: | ------: | -------: | ---------: | -----------: | --------- | ------- | -------------------- |
|      2 |      1 |       3 |        1 |       2m0s |           6s | 4, then 1 | abc1234 | 2026-01-02 08:00 UTC |

Capabilities: RWX, exec.

Also declared:

- TopologyKeys: kubernetes.io/hostname

### Problems

- The invocation: Interrupted by User

### Other numbers of specs than recorded

- Suite subPath: …
- ` + Hint + `

### Failed

- External Storage [Driver: shared] [Testpattern: Dynamic PV (block volmode)] provisioning breaks
  test/e2e/storage/testsuites/subpath.go:12: it broke | badly:
    twice

### Passed and failed, when repeated

- External Storage [Driver: shared] [Testpattern: Dynamic PV (xfs)] [Slow] multiVolume [Slow] survives: 2 attempts

### By suite

| Suite        | Passed | Failed | Skipped | Left out |
| ------------ | -----: | -----: | ------: | -------: |
| multiVolume  |      1 |      0 |       2 |        0 |
| provisioning |      1 |      1 |       1 |        1 |

### Skipped, by reason

| Reason                               | Specs | Suites                    |
| ------------------------------------ | ----: | ------------------------- |
| Driver does not support cloning      |     2 | multiVolume, provisioning |
| Driver doesn't support Block \| File |     1 | multiVolume               |
`
	driver := Driver{Name: "shared", Capabilities: []string{"RWX", "exec"}, Others: []string{"TopologyKeys: kubernetes.io/hostname"}}
	if diff := cmp.Diff(want, Markdown(driver, run, "abc1234", []string{"Suite subPath: …"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarkdown_LeavesOutEmptyParts(t *testing.T) {
	want := `## shared

| Passed | Failed | Skipped | Left out | Time taken | Sum of specs | Processes | Commit  | Date                 |
| -----: | -----: | ------: | -------: | ---------: | -----------: | --------- | ------- | -------------------- |
|      1 |      0 |       0 |        0 |       1m0s |           2s | 1         | unknown | 2026-01-02 08:00 UTC |

Capabilities: none.

### By suite

| Suite        | Passed | Failed | Skipped | Left out |
| ------------ | -----: | -----: | ------: | -------: |
| provisioning |      1 |      0 |       0 |        0 |
`
	run := merge(t, invocation(8, 1, spec(block, "works", types.SpecStatePassed)))
	if diff := cmp.Diff(want, Markdown(Driver{Name: "shared"}, run, "", nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFocus_SelectsWhatFailed(t *testing.T) {
	run := merge(t, invocation(8, 1,
		spec(slow, "breaks (often)", types.SpecStatePanicked),
		spec(block, "works", types.SpecStatePassed),
		spec(block, "breaks", types.SpecStateFailed)))
	got := Focus(run)
	if len(got) != 2 {
		t.Fatalf("got %q", got)
	}
	for i, failed := range run.In(Failed) {
		if !regexp.MustCompile("^" + got[i] + "$").MatchString(failed.Name) {
			t.Errorf("%q does not select %q", got[i], failed.Name)
		}
	}
}
