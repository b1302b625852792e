// Package admission judges PavProvisioners when they are written, and the pods that node agents create: a validating
// webhook, served by every replica of the controller agent, and its certificate, renewed by any of them. It changes
// nothing but that certificate and the records of stages whose pods were admitted; of definitions' pods it makes dry
// runs only, and it never judges an update of a definition that leaves the spec as it is, or an object under deletion.
package admission
