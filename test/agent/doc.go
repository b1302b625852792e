// Package agent runs the controller agent inside a test. The agent has a line to the API server, which the test can cut
// or make fail. The integration and the end-to-end tests share this package: it knows no cluster, and never acts on one
// by itself.
package agent
