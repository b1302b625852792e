// Command check-jsonschema stands for the program of that name that COSI's end-to-end test installs from the network:
//
//	check-jsonschema --schemafile SCHEMA FILE
//
// It fails if the file is not valid by the schema.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	schema := flag.String("schemafile", "", "the path of the schema")
	flag.Parse()
	if *schema == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := check(*schema, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(schema, file string) error {
	compiled, err := jsonschema.NewCompiler().Compile(schema)
	if err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	text, err := os.Open(file)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return compiled.Validate(value)
}
