// Package sandbox shows that no template can harm the process that evaluates it, or other templates: not
// by what it asks for, not by how long it is, not by being evaluated a thousand times at once.
package sandbox
