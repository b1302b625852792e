// Package version is "kubectl pav version": it compares the versions of the plugin and of the agents. It only reads.
package version
