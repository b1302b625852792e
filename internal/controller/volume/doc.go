// Package volume provisions and deletes volumes: from the PavVolume to the PersistentVolume, and back. A pass gathers an
// observation of the volume, decides on one step (a pure function of the observation) and takes it. The write that the step
// makes brings the next pass. Of claims, the package writes only the status, and removes the node that the scheduler selected;
// it never mounts, and never deletes storage that is retained or staged on a node.
package volume
