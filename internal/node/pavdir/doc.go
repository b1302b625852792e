// Package pavdir owns the /pav directories of a node: it makes the directory that a stage's pods
// share, or one that a pod keeps for itself, gives it to their containers, sees what they leave
// there, and takes it away again. It also keeps what the agent must know of its stages when the API
// server is away, or has forgotten them. It knows directories and mounts, and nothing of the API server;
// it never trusts a byte that a pod wrote, and never removes anything across a mount.
//
// Below kubelet's plugins directory, the one with the name of PaV's driver has
//
//	stages/NAME/pav                  /pav of the stage's pods
//	stages/NAME/client               where the volume is attached, and clients' binds come from
//	stages/NAME/stage.json           the record of the stage (Stage)
//	stages/NAME/targets/HASH.json    the record of a target that has the volume (Publication)
//	pods/ID/pav                      /pav of a pod that has its own
//	pods/ID/pod.json                 the record of that pod (Pod)
//
// No pod sees more of it than its /pav.
//
// A directory is a mount of its own, in a peer group of its own, so that what a privileged container
// mounts below its /pav appears in it, and stays when the container has gone.
package pavdir
