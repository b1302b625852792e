// Package stage lets go of PavStages whose node is gone: its Node object is deleted, or carries the
// out-of-service taint, by which an administrator vouches that nothing runs there any more. Of the stages of a
// node that exists, which are its node agent's, it lets go those only that nothing was done for and that no pod
// there has a use for.
package stage
