// Package cleanup takes care of what no node agent does.
//
// StageReconciler releases PavStages whose node is gone: its Node object is deleted, or has the out-of-service taint, by
// which an administrator vouches that nothing runs there any more. Of a node that exists it releases only a stage that
// nothing was done for and that no pod there uses.
//
// MissingDriverReconciler explains to the users of a volume that its driver does not exist. Kubernetes takes such a
// PersistentVolume for one that must be attached, and waits for an attacher that will never come, without naming the
// cause. It writes events only, and only for names that a PavProvisioner could have and nothing else has.
package cleanup
