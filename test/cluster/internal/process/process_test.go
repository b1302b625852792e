package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestParseStatWithDifficultNames(t *testing.T) {
	rest := " S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	for _, name := range []string{"(sh)", "(a b)", "(a) R 5)", "()"} {
		state, started, err := parseStat("12 " + name + rest)
		if err != nil || state != "S" || started != 4711 {
			t.Errorf("%s: got %q, %d, %v", name, state, started, err)
		}
	}
	if _, _, err := parseStat("12 (sh) S 1"); err == nil {
		t.Error("a short line is accepted")
	}
}

func TestKillEndsExactlyTheIdentifiedProcess(t *testing.T) {
	command := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = command.Wait() }()
	identity, err := Identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	// This is the identity of an earlier process with the same process ID.
	stale := identity
	stale.Started++
	if err := stale.Kill(t.Context()); err != nil || !identity.Running() {
		t.Fatalf("another process was ended (%v)", err)
	}
	if err := identity.Kill(t.Context()); err != nil || identity.Running() {
		t.Fatalf("the process runs on (%v)", err)
	}
	if err := identity.Kill(t.Context()); err != nil {
		t.Errorf("ending it again: %v", err)
	}
}

func TestIdentityIsSavedAndLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity")
	if _, err := Load(path); !errors.Is(err, ErrGone) {
		t.Errorf("without a file: got %v, want ErrGone", err)
	}
	own, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(path)
	if err != nil || loaded != own || !loaded.Running() {
		t.Errorf("got %+v, %v; want %+v", loaded, err, own)
	}
}

func TestLockIsExclusiveAndIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "directory", "lock")
	first, err := Lock(t.Context(), path, func() { t.Error("a free lock was waited for") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waited := false
	if _, err := Lock(ctx, path, func() { waited = true }); !errors.Is(err, context.DeadlineExceeded) || !waited {
		t.Errorf("got %v (told: %v), want the deadline", err, waited)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Lock(t.Context(), path, func() { t.Error("a released lock was waited for") })
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestInnermost(t *testing.T) {
	for status, want := range map[string]int{
		"Name:\tx\nNSpid:\t4711\t12\n": 12, "NSpid:\t4711\n": 4711, "NSpid:\t1\t2\t3\n": 3,
	} {
		if got, found := innermost(status); !found || got != want {
			t.Errorf("%q: got %d, %v; want %d", status, got, found, want)
		}
	}
	if _, found := innermost("Name:\tx\n"); found {
		t.Error("a number is found where there is none")
	}
}

func TestOutsideKnowsTheCaller(t *testing.T) {
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	inner, found := innermost(string(content))
	if got := Outside(os.Getpid())[inner]; !found || got != os.Getpid() {
		t.Errorf("got %d, want %d", got, os.Getpid())
	}
}

func TestWriteFileLeavesNothingElseBehind(t *testing.T) {
	directory := t.TempDir()
	for i := range 2 {
		if err := WriteFile(filepath.Join(directory, "file"), fmt.Append(nil, i), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v; want one file", entries, err)
	}
}
