// Package pavdir owns the /pav directories of a node: it creates the directory that a stage's pods share, or that of
// a single pod, mounts it for their containers, reads the files that they leave, and removes it. It also keeps the
// records that the agent needs of its stages if the API server is down or has lost them. It works on directories and
// mounts, and never uses the API server. It never trusts data that a pod wrote, and never removes anything across a
// mount.
//
// Below kubelet's plugins directory, the one with the name of PaV's driver has
//
//	stages/NAME/pav                  /pav of the stage's pods
//	stages/NAME/client               where the volume is attached, and clients' binds come from
//	stages/NAME/stage.json           the record of the stage (Stage)
//	stages/NAME/targets/HASH.json    the record of a target that has the volume (Publication)
//	pods/ID/pav                      /pav of a pod that has its own
//	pods/ID/pav/credentials          a file system of its own, if it is a grant pod
//	pods/ID/pod.json                 the record of that pod (Pod)
//
// A pod sees only its /pav.
//
// Each directory is a separate mount, in a separate peer group, so that mounts of a privileged container below its
// /pav appear in the directory, and stay when the container is gone.
package pavdir
