// Package summary summarises the results of Kubernetes' external-storage suite for one driver. It merges the Ginkgo
// reports of several invocations and writes the summary as Markdown. It also compares the numbers of specs with
// recorded numbers, because a mistyped capability in a driver definition disables specs silently. It takes bytes and
// reports and returns text. It reads no files and runs no programs.
package summary
