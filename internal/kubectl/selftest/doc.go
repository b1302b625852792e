// Package selftest is the command "kubectl pav test". It installs a copy of a PavProvisioner under a new name,
// provisions volumes with it, writes and reads them in pods, moves them to another node, deletes everything again,
// and reports the result of each step. It never changes an object that it did not create, waits on watches, and
// always cleans up, even when it is interrupted.
package selftest
