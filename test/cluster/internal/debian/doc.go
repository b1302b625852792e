// Package debian sees to it that the machine has the few Debian packages that a cluster needs.
package debian
