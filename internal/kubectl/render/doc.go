// Package render is "kubectl pav render": it shows the pods that PaV would create for a claim, using the agents' own
// code. It makes up the objects that no file contains, and says so in its output. It contacts an API server only for
// --diff: to read an installed definition and, with --volumes, the volumes that exist and their objects. It writes
// nothing to it.
package render
