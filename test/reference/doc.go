// Package reference compares PaV with code that others wrote for the same protocols of buckets. That code is fetched as Go modules, whose
// checksums are verified. Each has a module of its own below this directory that depends on it, so that PaV does not get its dependencies.
//
// What differs is written in docs/buckets-comparison.md, with the reasons: any other difference fails a test, and so does one that is
// written but is none.
package reference
