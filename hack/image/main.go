package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/albertofaria/pav/hack/image/archive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the root context is created here
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run makes an image as the arguments say, and prints its digest.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	full := flags.String("name", "", "the full name of the image: registry, repository and tag")
	version := flags.String("version", "", "the version of PaV")
	revision := flags.String("revision", "", "the commit that the programs are built from")
	created := flags.String("created", "", "the time of the commit, in seconds since 1970")
	output := flags.String("out", "", "the archive to write")
	push := flags.Bool("push", false, "also push the image to its registry")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var missing error
	flags.VisitAll(func(f *flag.Flag) {
		if f.Value.String() == "" {
			missing = errors.Join(missing, fmt.Errorf("-%s is missing", f.Name))
		}
	})
	if missing != nil {
		return missing
	}
	tag, err := name.NewTag(*full, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading the name: %w", err)
	}
	seconds, err := strconv.ParseInt(*created, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the time of the commit: %w", err)
	}
	index, err := product{version: *version, revision: *revision, created: time.Unix(seconds, 0), source: "."}.build(ctx, flags.Args())
	if err != nil {
		return err
	}
	if err := archive.Write(*output, index, []string{*full}); err != nil {
		return err
	}
	if *push {
		if err := pushIndex(ctx, tag, index); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, digest)
	return err
}

func pushIndex(ctx context.Context, tag name.Tag, index v1.ImageIndex) error {
	err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	return nil
}
