// Package summary tells what invocations of Kubernetes' external-storage suite came to for one driver: it
// merges their Ginkgo reports, compares the numbers of specs with recorded ones, since a driver definition
// with a mistyped capability switches specs off without a word, and writes the whole down as Markdown. It
// takes bytes and reports and gives text; it reads no file and runs nothing.
package summary
