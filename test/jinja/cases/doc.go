// Package cases knows the form of the acceptance data for templates: a template, its context, and what
// real Jinja makes of them. It reads such cases, evaluates them with PaV's engine, and judges results.
package cases
