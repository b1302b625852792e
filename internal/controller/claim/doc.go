// Package claim decides whether PaV provisions a volume for a claim. If so, it writes the intent, a PavVolume, and
// keeps the PavVolume's copy of the claim up to date until the claim is deleted. It never writes claims or
// PersistentVolumes, and never evaluates templates.
package claim
