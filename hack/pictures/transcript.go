package main

import (
	"fmt"
	"strings"
)

// recorded returns the output of a command on a page of transcripts, with the exit status if it is not 0.
func recorded(page, command string) (string, error) {
	head := "```console\n$ " + command + "\n"
	_, rest, found := strings.Cut(page, head)
	if !found {
		return "", fmt.Errorf("the transcripts have no command %q", command)
	}
	output, _, found := strings.Cut(rest, "```\n")
	if !found {
		return "", fmt.Errorf("the output of %q does not end", command)
	}
	return output, nil
}
