// Command pictures draws terminals to docs/pictures, with output of "kubectl pav" that docs/transcripts.md has, or that
// the command prints without a cluster. "make generate" runs it. It never changes a word of the output. The transcripts
// are recorded without colours, which it adds as the commands do on a terminal. The other pictures are drawn by hand.
package main
