// Command docgen writes docs/reference.md from the generated CRDs, the table of context variables, the flags of the
// agents and the table of metrics. "make generate" runs it. It adds no information of its own.
package main
