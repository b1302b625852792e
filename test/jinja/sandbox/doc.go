// Package sandbox tests that no template can harm the process that evaluates it, or other templates. It tests hostile
// content, large sources, and thousands of concurrent evaluations.
package sandbox
