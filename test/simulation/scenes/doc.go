// Package scenes has short plays of a cluster's life that are given twice: with a real API server and Kubernetes'
// own controllers of volumes, and in the simulated world. All objects must look the same in both, at each look.
//
// What a scene makes is named after it. The scene itself plays the scheduler, the kubelet and the node agent: both
// worlds have the controller agent only. The package compares no times, no UIDs, and nothing of a pod's specification.
package scenes
