package main

import (
	"os"

	"github.com/albertofaria/pav/test/cluster/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
