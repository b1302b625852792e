// Package generate creates random templates and contexts from a grammar of the template language. The templates use
// every statement, operator, filter, test, global and method, with arguments of right and wrong types, and with unusual
// spacing and literals. Some templates are mutated, mostly into syntax errors. The same seed and number always give the
// same case. The package does not depend on any engine.
package generate
