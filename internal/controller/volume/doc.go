// Package volume takes dynamically provisioned volumes through their life: PavVolume to
// PersistentVolume, and back. A pass gathers what is known of a volume, decides on one step (a pure
// function of what was gathered) and takes it; the write that the step makes brings the next pass.
// The package never writes claims, never mounts, and never deletes storage that is retained or
// staged somewhere.
package volume
