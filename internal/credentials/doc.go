// Package credentials carries what a grant pod leaves in /pav/credentials from the node of the pod to the controller agent,
// so that nobody else can read it: the controller agent makes a key for one attempt, the node agent seals the credentials with
// the public half, and only the private half opens them. The package also says which credentials a protocol needs, and removes
// them from texts.
//
// It knows no file, no object and no client, and never logs.
package credentials
