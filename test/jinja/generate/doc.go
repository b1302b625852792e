// Package generate makes templates and contexts at random from a grammar of the template language: every
// statement, operator, filter, test, global and method, with arguments of right and wrong types, odd
// spacing and odd literals; and, of some, mutations that are most often syntax errors. The same seed and
// number always give the same case. It knows nothing of any engine.
package generate
