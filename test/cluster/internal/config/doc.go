// Package config renders the command lines and the configuration files of a node's programs. Their settings suit a
// cluster on one machine without any network. Apart from Write, the package has no side effects.
package config
