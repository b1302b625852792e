// Package scenes has short scenes of a cluster. Each scene is played twice: in a real cluster and in the simulated world.
// At each look, all objects must be the same in both worlds.
//
// The names of a scene's objects contain the name of the scene. The package does not compare times, UIDs or the
// specifications of pods.
//
// The scenes of All play the scheduler, the kubelet and the node agent themselves: both worlds run only the controller
// agent, the API server and Kubernetes' own volume controllers. The scenes of Mounted have clients: in both worlds, both
// agents, the scheduler and a kubelet run, and the scripts of the workflow pods do the same.
package scenes
