// Package chainsaw runs tests that are written for Kyverno's program of that name, which cannot be used as a module. It knows what COSI's
// end-to-end test needs: bindings, expressions that refer to them, and the operations apply, create and assert. It fails on all else. As
// the program does, it deletes at the end what the test has made, in the reverse order, and waits until that is gone.
package chainsaw
