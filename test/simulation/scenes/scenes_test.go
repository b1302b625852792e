package scenes

import (
	"slices"
	"strings"
	"testing"
)

// Each scene ends in the simulated world and leaves no objects. The integration tests and the end-to-end tests play the
// scenes in both worlds.
func TestScenes_EndAndLeaveNothing(t *testing.T) {
	for _, scene := range slices.Concat(All, Mounted) {
		t.Run(scene.Name, func(t *testing.T) {
			looks := Simulate(t, scene)
			if last, looked := looks["in the end"]; !looked || last != "" {
				t.Errorf("in the end there is, of %d looks:\n%s", len(looks), last)
			}
			for name, text := range looks {
				if name != "in the end" && !strings.Contains(text, "scene-"+scene.Name) {
					t.Errorf("%s: nothing of the scene is seen:\n%s", name, text)
				}
			}
		})
	}
}
