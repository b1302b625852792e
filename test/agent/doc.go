// Package agent runs the controller agent inside a test, on a line to the API server that the test
// can cut or make fail. It is what the integration and the end-to-end tests share: it knows no
// cluster, and never acts on one by itself.
package agent
