// Package describe is "kubectl pav describe": it shows what package timeline has found out about the volume of
// a claim, a PersistentVolume or a pod, with the last words of a pod that fails. It changes nothing.
package describe
