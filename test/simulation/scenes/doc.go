// Package scenes has short scenes of a cluster. Each scene is played twice: with a real API server and Kubernetes' own
// volume controllers, and in the simulated world. At each look, all objects must be the same in both worlds.
//
// The names of a scene's objects contain the name of the scene. The scene itself plays the scheduler, the kubelet and
// the node agent: both worlds run only the controller agent. The package does not compare times, UIDs or the
// specifications of pods.
package scenes
