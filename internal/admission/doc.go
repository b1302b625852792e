// Package admission judges PavProvisioners when they are written: a validating webhook, served by
// every replica of the controller agent, and its certificate, renewed by any of them. It changes
// nothing but that certificate; of pods it makes dry runs only, and it never judges an update that
// leaves the spec as it is, or an object under deletion.
package admission
