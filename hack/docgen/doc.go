// Command docgen writes docs/reference.md, from the generated CRDs, the table of context variables, the
// flags of the agents and the table of metrics. It is run by "make generate", and says nothing that is not
// written at these places.
package main
