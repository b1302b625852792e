// Package reading lets an object read the storage of a volume that others use: a snapshot that is made of it, or a volume that is created
// from it. A reader is recorded in the PavVolume while no pod changes the volume, so that nothing changes it before the reader has read
// it. The package asks nodes to write to the storage what they have in memory; it never runs pods.
package reading
