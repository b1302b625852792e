// Package validation says whether a definition can provision a volume: the checks of
// spec.volumeValidation that need no pod. Both agents use it, for claims and for PersistentVolumes that
// somebody wrote. It evaluates templates and does nothing else: no pod, no API server.
package validation
