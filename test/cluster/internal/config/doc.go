// Package config renders what a node's programs are started with: command lines and configuration
// files. It is pure; the flags say what a cluster on one machine without any network needs.
package config
