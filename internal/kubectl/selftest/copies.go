package selftest

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The scripts that look for the data in a copy of a volume, and then change it.
const (
	changeFile = checkFile + `why=$( { echo changed > "$FILE"; } 2>&1 ) || say 1 "changing the file in the copy failed: $why"
sync "$FILE" 2>/dev/null || sync
`
	changeDevice = `[ "$(pattern | sum)" = "$(head -c "$BYTES" "$VOLUME" | sum)" ] || say 3 "the copy's device has other content than was written"
why=$(head -c 4096 /dev/zero | dd of="$VOLUME" bs=4096 conv=notrunc 2>&1) || say 1 "changing the copy's device failed: $why"
sync
`
)

// copies creates volumes from the volume, in the ways that the definition offers, and returns whether no step failed.
func (s *scenario) copies(ctx context.Context) bool {
	definition, err := s.input.definition()
	if err != nil || definition.Spec.VolumeCreation == nil || s.volume.static != "" || !s.volume.writes() || !s.kept {
		return true
	}
	for _, kind := range definition.Spec.VolumeCreation.DataSources {
		switch {
		case kind == pavv1.DataSourceClaim:
			if !s.copy(ctx, kind) {
				return false
			}
		case definition.Spec.SnapshotCreation != nil:
			if !s.restoreSnapshot(ctx) {
				return false
			}
		}
	}
	return true
}

// copy creates a volume from the volume, or from its snapshot, and checks that it has the data, and that changes of it do not reach the
// volume. After a failed step, only the steps that delete the copy run.
func (s *scenario) copy(ctx context.Context, kind pavv1.DataSourceKind) bool {
	least := s.pv.Spec.Capacity[corev1.ResourceStorage]
	if s.size != nil && s.size.Cmp(least) > 0 {
		least = *s.size
	}
	c := &scenario{run: s.run, volume: volume{mode: s.volume.mode, access: s.volume.access, source: kind, least: &least}}
	if !c.step(ctx, &c.volume, "create", c.provision) {
		return false
	}
	intact := c.step(ctx, &c.volume, "find the data, and change it", c.write) && s.ending(ctx, &s.volume, "keep its data when the copy changes", s.unchanged)
	if s.options.Keep || s.stuck {
		return intact
	}
	removed := c.ending(ctx, &c.volume, "leave the node", c.leave) && c.step(ctx, &c.volume, "delete", c.remove)
	s.stuck = c.stuck
	return intact && removed
}

// unchanged checks that the volume still has what was written.
func (s *scenario) unchanged(ctx context.Context) (outcome, error) {
	if _, err := s.leave(ctx); err != nil {
		return outcome{}, err
	}
	if _, err := s.runPod(ctx, s.reader("source", s.reading())); err != nil {
		return outcome{}, err
	}
	return passed("")
}
