// Package admission checks PavProvisioners when they are written, and pods that the agents create: with validating
// webhooks, which every replica of the controller agent serves, and their certificate, which any replica renews. It
// writes only that certificate, and the records of stages whose pods were admitted. Of definitions' pods it makes
// only dry runs. It does not check updates of a definition that leave the spec unchanged, and objects that are being
// deleted.
package admission
