// Package parts tests the script that runs the parts of "make test" and "make test-long".
package parts
