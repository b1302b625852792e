// Package try is the command "kubectl pav test": it installs a copy of a PavProvisioner under a name of its
// own, makes volumes of it, has pods write and read them, moves them to another node, deletes all again,
// and reports how each step went. It touches nothing that it did not create, waits by watching, and cleans
// up whatever happens, also when it is interrupted.
package try
