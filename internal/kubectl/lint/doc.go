// Package lint is "kubectl pav lint": it reports the findings of admission about PavProvisioners in files, with their
// positions in the file. It contacts an API server only with --dry-run=server, and then only for a dry run.
package lint
