package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/hack/image/archive"
	"github.com/albertofaria/pav/test/cluster/internal/compile"
	"github.com/albertofaria/pav/test/cluster/internal/image"
)

func newImage() *cobra.Command {
	var names []string
	var binary, entrypoint string
	command := &cobra.Command{
		Use:   "image --ref NAME... --binary PATH --entrypoint PATH OUT.tar",
		Short: "Make an image of one static program",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return image.Single(binary, entrypoint).Write(arguments[0], names)
		},
	}
	command.Flags().StringArrayVar(&names, "ref", nil, "name of the image; may be given several times")
	command.Flags().StringVar(&binary, "binary", "", "the program")
	command.Flags().StringVar(&entrypoint, "entrypoint", "", "where the program lies in the image")
	for _, flag := range []string{"ref", "binary", "entrypoint"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(fmt.Sprintf("flag %q does not exist", flag)) // this would be a programming error in this function
		}
	}
	command.AddCommand(newShellImage(), newExamplesImage(), newS3Image(), newSuiteImages())
	return command
}

func newShellImage() *cobra.Command {
	return &cobra.Command{
		Use:   "shell OUT.tar [NAME...]",
		Short: "Make an image of busybox and bash, named " + image.ShellName + " and further names",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(called *cobra.Command, arguments []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			made, err := image.Shell(ctx)
			if err != nil {
				return err
			}
			return made.Write(arguments[0], append([]string{image.ShellName}, arguments[1:]...))
		},
	}
}

func newExamplesImage() *cobra.Command {
	return &cobra.Command{
		Use:   "examples OUT.tar",
		Short: "Make the image of examples/Containerfile, named " + image.ExamplesName,
		Args:  cobra.ExactArgs(1),
		RunE: func(called *cobra.Command, arguments []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			made, err := image.Examples(ctx, called.ErrOrStderr())
			if err != nil {
				return err
			}
			return made.Write(arguments[0], []string{image.ExamplesName})
		},
	}
}

func newS3Image() *cobra.Command {
	return &cobra.Command{
		Use:   "s3 FUNCTIONS OUT.tar",
		Short: "Make the image of clients of object stores, with a file of functions for Bash, named " + image.S3Name,
		Args:  cobra.ExactArgs(2),
		RunE: func(called *cobra.Command, arguments []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			made, err := image.S3(ctx, called.ErrOrStderr(), arguments[0])
			if err != nil {
				return err
			}
			return made.Write(arguments[1], []string{image.S3Name})
		},
	}
}

func newSuiteImages() *cobra.Command {
	return &cobra.Command{
		Use:   "suite AGNHOST.tar GNU.tar SHELL.tar",
		Short: "Make the images that Kubernetes' storage tests use",
		Args:  cobra.ExactArgs(3),
		RunE: func(called *cobra.Command, arguments []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			programs, err := build(ctx, compile.Selection{Kubectl: !compile.HasKubectl(), Agnhost: true}, os.Stderr)
			if err != nil {
				return err
			}
			for i, wanted := range []struct {
				names []string
				make  func() (archive.Image, error)
			}{
				{[]string{image.AgnhostName}, func() (archive.Image, error) { return image.Agnhost(ctx, filepath.Join(programs.directory, "agnhost")) }},
				{[]string{image.GNUName}, func() (archive.Image, error) { return image.GNU(ctx, os.Stderr) }},
				{image.SuiteShellNames, func() (archive.Image, error) { return image.Shell(ctx) }},
			} {
				made, err := wanted.make()
				if err != nil {
					return err
				}
				if err := made.Write(arguments[i], wanted.names); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
