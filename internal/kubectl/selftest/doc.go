// Package selftest is the command "kubectl pav test". It installs a copy of a PavProvisioner under a name of its own,
// provisions volumes with it, writes and reads them in pods, moves them to another node, deletes everything again, and
// reports how each step went. It touches nothing that it did not create, waits on watches, and cleans up in any case,
// also when it is interrupted.
package selftest
