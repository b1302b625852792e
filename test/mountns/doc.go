// Package mountns runs tests that create real mounts in a new mount namespace, and on request once more without system
// calls that older kernels do not have. The package itself creates no mounts.
package mountns
