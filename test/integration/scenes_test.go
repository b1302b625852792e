package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/test/simulation/scenes"
)

// The simulated world is held to this one: all objects of a scene look the same in both, at each look.
func TestScenes_LookTheSameInBothWorlds(t *testing.T) {
	for _, scene := range scenes.All {
		t.Run(scene.Name, func(t *testing.T) {
			looks := scenes.Simulate(t, scene)
			c := start(t)
			run(t, c)
			node := "node-" + scene.Name
			h := &scenes.Hands{Scene: scene.Name, Kube: c.Admin, NodeAgent: nodeAgent(t, c, node), Node: node, Namespace: "default"}
			looked := 0
			h.Look = func(_ context.Context, name string, text func(context.Context) (string, error)) error {
				looked++
				diff := "" // of the last answer
				//nolint:contextcheck // it has its own deadline
				eventually(t, fmt.Sprintf("%q looks as in the simulated world", name), func(ctx context.Context) (bool, string) {
					now, err := text(ctx)
					if err == nil {
						diff = "(-simulated +real):\n" + cmp.Diff(looks[name], now)
					}
					return err == nil && now == looks[name], diff
				})
				return nil
			}
			if err := scene.Play(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if looked != len(looks) {
				t.Errorf("there were %d looks, and %d in the simulated world", looked, len(looks))
			}
		})
	}
}
