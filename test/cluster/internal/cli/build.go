package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/hack/image/archive"
	"github.com/albertofaria/pav/test/cluster/internal/compile"
	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/debian"
	"github.com/albertofaria/pav/test/cluster/internal/image"
	"github.com/albertofaria/pav/test/cluster/internal/paths"
)

func newBuild() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "build",
		Short: "Compile the programs of a cluster into the cache, and print their directory",
		Args:  cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			start := time.Now()
			programs, err := build(ctx, compile.Selection{Kubectl: all || !compile.HasKubectl(), Agnhost: all}, os.Stderr)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "the programs are ready after %.1f s\n", time.Since(start).Seconds())
			_, err = fmt.Fprintln(called.OutOrStdout(), programs.directory)
			return err
		},
	}
	command.Flags().BoolVar(&all, "all", false, "also kubectl and agnhost, the program of an image of Kubernetes' end-to-end tests")
	return command
}

func newPackages() *cobra.Command {
	return &cobra.Command{
		Use:   "packages",
		Short: "Install the Debian packages that the cluster and the tests of the checkout take, where they are missing",
		Args:  cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			return debian.EnsureForTests(ctx, os.Stderr)
		},
	}
}

// built is what a cluster is started with.
type built struct {
	// directory has the programs.
	directory string
	// images are the archives of the images that each node gets.
	images  []string
	version compile.Version
}

// build compiles the selected programs that are missing, for the version of Kubernetes that the environment names.
func build(ctx context.Context, selected compile.Selection, progress io.Writer) (built, error) {
	version, err := compile.FindVersion(os.Getenv(compile.VersionVariable))
	if err != nil {
		return built{}, err
	}
	checkout, err := paths.Checkout()
	if err != nil {
		return built{}, err
	}
	cache, err := paths.Cache()
	if err != nil {
		return built{}, err
	}
	if err := debian.Ensure(ctx, progress); err != nil {
		return built{}, err
	}
	builder := compile.Builder{Source: filepath.Join(checkout, "test", "cluster"), Cache: cache, Version: version, Progress: progress}
	directory, err := builder.Build(ctx, selected)
	if err != nil {
		return built{}, err
	}
	images, err := makeImages(ctx, directory)
	return built{directory: directory, images: images, version: version}, err
}

// makeImages creates the images that are missing and returns the archives of all. The archives are in the directory of
// the programs, because the same inputs determine both.
func makeImages(ctx context.Context, directory string) ([]string, error) {
	pause, shell := filepath.Join(directory, "pause.image.tar"), filepath.Join(directory, "shell.image.tar")
	if _, err := os.Stat(pause); err != nil {
		single := image.Single(filepath.Join(directory, "pause"), "/pause")
		if err := single.Write(pause, []string{config.PauseImage}); err != nil {
			return nil, fmt.Errorf("making the pause image: %w", err)
		}
	}
	tools := filepath.Join(directory, strings.ReplaceAll(path.Base(image.ToolsName), ":", "-")+".image.tar")
	for _, wanted := range []struct {
		output, name string
		make         func(context.Context) (archive.Image, error)
	}{{shell, image.ShellName, image.Shell}, {tools, image.ToolsName, image.Tools}} {
		if _, err := os.Stat(wanted.output); err == nil {
			continue
		}
		made, err := wanted.make(ctx)
		if err != nil {
			return nil, err
		}
		if err := made.Write(wanted.output, []string{wanted.name}); err != nil {
			return nil, fmt.Errorf("making the image %s: %w", wanted.name, err)
		}
	}
	return []string{pause, shell, tools}, nil
}
