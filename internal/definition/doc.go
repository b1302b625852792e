// Package definition checks a PavProvisioner without a cluster and without evaluating its templates. Admission and
// "kubectl pav lint" both use it, so they report the same findings. It reads plain data only: it never contacts an
// API server, opens a file or changes anything, and uses the clock only for its own time limits.
package definition
