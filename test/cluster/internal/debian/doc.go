// Package debian installs the few Debian packages that a cluster needs, if they are missing.
package debian
