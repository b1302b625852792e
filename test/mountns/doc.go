// Package mountns runs tests that make real mounts in a mount namespace of their own. It mounts nothing itself.
package mountns
