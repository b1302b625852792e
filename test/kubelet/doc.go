// Package kubelet simulates the scheduler, kubelet and the container runtime for a real node agent, which runs in a
// process of its own. The node is only a directory. Workflow pods get their /pav through the agent's socket, and run a
// function of the test instead of containers. The package makes the four calls in the life of a volume as kubelet does,
// with the paths that kubelet uses. It decides nothing that kubelet leaves to the driver, and knows nothing of how the
// agent works.
//
// It creates real mounts, so tests that use it must run in a mount namespace of their own (package mountns).
package kubelet
