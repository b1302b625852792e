// Package cases implements the format of the acceptance data for templates. Each case has a template, its context, and
// the outcome with real Jinja. The package reads cases, evaluates them with PaV's engine, and compares the outcomes.
package cases
