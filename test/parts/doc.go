// Package parts tests the scripts that run the parts of "make test" and "make test-long".
package parts
