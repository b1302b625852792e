// Package workflow turns an evaluated pod template into a pod with PaV's policy, runs the pod and returns its
// outcome. PaV does all work with workflow pods. The package decides nothing about volumes, evaluates no templates,
// and never deletes a pod before its caller has recorded the outcome.
package workflow
