// Package mountns runs tests that create real mounts in a new mount namespace. The package itself creates no mounts.
package mountns
