// Package reference compares PaV with code that others wrote for the same protocols of buckets. That code is fetched as Go modules, whose
// checksums are verified, and compiled unchanged; each program is a module of its own below this directory, so that PaV does not get its
// dependencies:
//
//   - lib-bucket-provisioner is a provisioner of ObjectBucketClaims around the library of that name;
//   - cosi-sidecar has a driver for COSI v1alpha1, and the version of the sidecar that runs beside it.
//
// The tests of this package compare definitions of kinds, and those of package integration run the programs beside PaV. What differs is
// written in docs/buckets-comparison.md, with the reasons: any other difference fails a test, and so does one that is written but is none.
package reference
