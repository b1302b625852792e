package node

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, call string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", call, got, want)
	}
}

// staged returns a node with one stage. The volume of the stage is attached, and bind-mounted at a client's target.
func staged(t *testing.T) (*Node, *Agent, *Mount) {
	t.Helper()
	n := New("node", "/kubelet")
	a := n.Open(Gate{}, nil)
	d := a.Directories()
	must(t, d.Record(t.Context(), "s", pavdir.Stage{}))
	must(t, d.Publish(t.Context(), "s", "/staging"))
	m, err := n.PodMounts("/staging", Volume{Name: "v", Daemon: true})
	must(t, err)
	must(t, d.Attach(t.Context(), "s", fileSystem))
	must(t, a.Mounts().Bind(t.Context(), stage.Binding{Source: d.Volume("s"), Target: "/client"}))
	return n, a, m
}

func TestGate_DecidesWhatBecomesOfACall(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		gate   func(func(context.Context, string) error) Gate
		exists bool
		empty  bool
	}{
		"before the effect":       {func(f func(context.Context, string) error) Gate { return Gate{Before: f} }, true, false},
		"between the effects":     {func(f func(context.Context, string) error) Gate { return Gate{Between: f} }, true, true},
		"after the effect":        {func(f func(context.Context, string) error) Gate { return Gate{After: f} }, false, true},
		"of another call, at all": {func(func(context.Context, string) error) Gate { return Gate{} }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			n, _, _ := staged(t)
			var asked []string
			gate := test.gate(func(_ context.Context, operation string) error {
				asked = append(asked, operation)
				n.Targets() // Targets would deadlock if the call held the lock.
				return refused
			})
			err := n.Open(gate, nil).Directories().Remove(t.Context(), "s")
			if asked != nil {
				wantError(t, "Remove", err, refused)
				if diff := cmp.Diff([]string{"Remove s"}, asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			}
			if exists := slices.Contains(n.Left(), "stage s"); exists != test.exists {
				t.Errorf("the directory is there: %t", exists)
			}
			if empty := !slices.Contains(n.Left(), "stage s: /pav is mounted"); empty != test.empty {
				t.Errorf("the directory is empty: %t", empty)
			}
		})
	}
}

func TestGate_HoldsUpOneMountAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, _ := staged(t)
		open := make(chan struct{})
		m := n.Open(Gate{Before: func(context.Context, string) error { <-open; return nil }}, nil).Mounts()
		bind := func() error {
			return m.Bind(t.Context(), stage.Binding{Source: n.volumeOf("s"), Target: "/new"})
		}
		first := make(chan error, 1)
		go func() { first <- bind() }()
		synctest.Wait()
		wantError(t, "Bind", bind(), mount.ErrHangs)
		close(open)
		wantError(t, "Bind", <-first, nil)
		wantError(t, "Bind", bind(), nil)
	})
}

func TestProbe_WaitsForAVolumeThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Node, *Agent, *Mount)
		want   error
	}{
		"until it answers":     {func(_ *Node, _ *Agent, m *Mount) { m.Becomes(Answers) }, nil},
		"until it dies":        {func(_ *Node, _ *Agent, m *Mount) { m.Becomes(Dead) }, mount.ErrDead},
		"until the agent ends": {func(_ *Node, a *Agent, _ *Mount) { a.Close() }, os.ErrClosed},
		"until a reboot":       {func(n *Node, _ *Agent, _ *Mount) { n.Reboot(true) }, os.ErrClosed},
		"until it is cut off":  {func(_ *Node, _ *Agent, m *Mount) { m.Becomes(CutOff) }, mount.ErrDead},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a, m := staged(t)
				m.Becomes(Hangs)
				ctx, cancel := context.WithCancel(t.Context())
				answer := make(chan error, 1)
				go func() {
					_, err := a.Mounts().Probe(ctx, "/client")
					answer <- err
				}()
				cancel()
				synctest.Wait()
				must(t, a.Mounts().Unmount(t.Context(), "/client"))
				synctest.Wait()
				if len(answer) > 0 {
					t.Fatalf("it does not wait: %v", <-answer)
				}
				test.change(n, a, m)
				wantError(t, "Probe", <-answer, test.want)
			})
		})
	}
}

func TestACutOffVolume_ComesBack_UnlessFenced(t *testing.T) {
	for name, fenced := range map[string]bool{"not fenced": false, "fenced": true} {
		t.Run(name, func(t *testing.T) {
			_, a, m := staged(t)
			probe := func() error {
				_, err := a.Mounts().Probe(t.Context(), "/client")
				return err
			}
			m.Becomes(CutOff)
			wantError(t, "Probe", probe(), mount.ErrDead)
			if fenced {
				must(t, a.Mounts().Fence(t.Context(), "/client"))
			}
			m.Becomes(Answers)
			if dead := errors.Is(probe(), mount.ErrDead); dead != fenced {
				t.Errorf("it is dead: %t", dead)
			}
		})
	}
}

func TestAnAgentThatHasEnded_HasNoEffect_AndHearsNothing(t *testing.T) {
	n := New("node", "/kubelet")
	var woken []string
	old := n.Open(Gate{}, func(stage string) { woken = append(woken, "old "+stage) })
	must(t, old.Directories().Prepare(t.Context(), "s"))
	_, err := old.Directories().Ready(t.Context(), "s")
	must(t, err)
	before := n.Left()
	old.Close()
	wantError(t, "Remove", old.Directories().Remove(t.Context(), "s"), os.ErrClosed)
	if diff := cmp.Diff(before, n.Left()); diff != "" {
		t.Errorf("left (-before +after):\n%s", diff)
	}
	next := n.Open(Gate{}, func(stage string) { woken = append(woken, "new "+stage) })
	_, err = next.Directories().Ready(t.Context(), "s")
	must(t, err)
	must(t, n.PodWrites("s", "ready", ""))
	if diff := cmp.Diff([]string{"new s"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

func TestReboot_IsAnotherStart(t *testing.T) {
	for name, sameBootID := range map[string]bool{"of the kernel": false, "of a container": true} {
		t.Run(name, func(t *testing.T) {
			n, _, _ := staged(t)
			n.Runs("uid", true)
			before := n.Boot()
			n.Reboot(sameBootID)
			if after := n.Boot(); after.Same(before) || (after.BootID == before.BootID) != sameBootID {
				t.Errorf("boots %+v and %+v", before, after)
			}
			if runs, err := n.Open(Gate{}, nil).Directories().Runs(t.Context(), "uid"); err != nil || runs {
				t.Errorf("a container runs: %t, %v", runs, err)
			}
			if what, ok := n.Mounted("/client"); ok {
				t.Errorf("%q is mounted", what)
			}
		})
	}
}

func TestLoseUnsynced_LosesNoRecordOfAStage(t *testing.T) {
	n, a, _ := staged(t)
	must(t, a.Directories().RecordPublication(t.Context(), "s", pavdir.Publication{Target: "/client"}))
	must(t, n.PodWrites("s", "ready", ""))
	n.Reboot(false)
	n.LoseUnsynced()
	want := []string{"place /client", "place " + n.volumeOf("s"), "place /staging", "stage s", "stage s: record"}
	if diff := cmp.Diff(want, n.Left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestWhatCanBeSeenOfANode(t *testing.T) {
	n, a, m := staged(t)
	m.Becomes(CutOff)
	if what, ok := n.Mounted("/client"); what != "v" || !ok {
		t.Errorf("mounted: %q, %t", what, ok)
	}
	if what, ok := n.PodSees("/staging"); what != "v" || !ok {
		t.Errorf("the pod sees %q, %t", what, ok)
	}
	want := []Target{{Path: "/client", Sees: "v", Layers: 1, Health: CutOff}}
	if diff := cmp.Diff(want, n.Targets()); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	must(t, a.Mounts().Unmount(t.Context(), "/client"))
	want = []Target{{Path: "/client", Sees: Disk}}
	if diff := cmp.Diff(want, n.Targets()); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	must(t, a.Mounts().Remove(t.Context(), "/client"))
	_, err := a.Directories().Unpublish(t.Context(), "/staging")
	must(t, err)
	if what, ok := n.PodSees("s"); what != "v" || !ok {
		t.Errorf("a pod would see %q, %t", what, ok)
	}
	must(t, a.Directories().Remove(t.Context(), "s"))
	if left := n.Left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
