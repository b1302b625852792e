// Package cleanup does the work that no node agent can do.
//
// StageReconciler releases PavStages whose node is gone: its Node object is deleted, or has the out-of-service taint,
// with which an administrator confirms that nothing runs there any more. On a node that exists, it releases only
// stages that no work was done for and that no pod there uses.
//
// MissingDriverReconciler explains to the users of a volume that its driver does not exist. Kubernetes treats such a
// PersistentVolume as one that must be attached, and waits forever for an attacher, without reporting the cause. It
// only records events, and only for names that a PavProvisioner could have and no other driver has.
package cleanup
