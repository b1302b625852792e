// Package machine says on which machine a benchmark ran, and how busy it was.
package machine
