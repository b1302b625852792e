// Package workflow turns an evaluated pod template into a fenced pod, runs it and tells its outcome.
// A workflow pod is PaV's only means of work. The package decides nothing about volumes, evaluates
// no templates and never deletes a pod whose outcome its caller has not recorded.
package workflow
