package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/albertofaria/pav/hack/image/archive"
	"github.com/albertofaria/pav/hack/image/licence"
)

// product is what is known of PaV, apart from the programs.
type product struct {
	version, revision string
	created           time.Time
	// source is the root of the checkout.
	source string
}

// build returns an index of the images of the programs, which are all of the command pav.
func (p product) build(ctx context.Context, programs []string) (v1.ImageIndex, error) {
	if len(programs) == 0 {
		return nil, errors.New("an image needs a program")
	}
	platforms := map[string]string{}
	var images []mutate.IndexAddendum
	for _, program := range programs {
		platform, err := platformOf(program)
		if err != nil {
			return nil, err
		}
		if other, found := platforms[platform.String()]; found {
			return nil, fmt.Errorf("both %s and %s are programs for %s", other, program, platform)
		}
		platforms[platform.String()] = program
		image, err := p.image(ctx, program, platform)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", platform, err)
		}
		images = append(images, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	index := mutate.AppendManifests(empty.Index, images...)
	annotated, ok := mutate.Annotations(index, p.labels()).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("an index with annotations is no index")
	}
	return annotated, nil
}

// image returns the image of one program. It has no user of its own: the node agent needs root, and the manifest of the
// controller agent sets another user.
func (p product) image(ctx context.Context, program string, platform v1.Platform) (v1.Image, error) {
	licences, err := licence.Collect(ctx, licence.Program{
		Directory: p.source, Package: "./cmd/pav", GOOS: platform.OS, GOARCH: platform.Architecture,
	})
	if err != nil {
		return nil, err
	}
	return archive.Image{
		Entries: []archive.Entry{
			{Path: "pav", Mode: 0o755, Source: program},
			{Path: "licenses", Mode: fs.ModeDir | 0o755},
			{Path: "licenses/LICENSE", Mode: 0o644, Source: filepath.Join(p.source, "LICENSE")},
			{Path: "licenses/third-party.txt", Mode: 0o644, Content: licences},
		},
		Config:       v1.Config{Entrypoint: []string{"/pav"}, WorkingDir: "/", Labels: p.labels()},
		Architecture: platform.Architecture,
		Created:      p.created,
	}.Build()
}

// labels are the labels of the images, and the annotations of their index.
func (p product) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "PaV",
		"org.opencontainers.image.description": "Pods-as-Volumes: Kubernetes volumes defined by pod templates",
		"org.opencontainers.image.source":      "https://github.com/albertofaria/pav",
		"org.opencontainers.image.version":     p.version,
		"org.opencontainers.image.revision":    p.revision,
		"org.opencontainers.image.created":     p.created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "MIT",
	}
}

// platformOf returns the platform that a program was compiled for. It refuses those that cannot run without libraries.
func platformOf(program string) (v1.Platform, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("reading what %s was built from: %w", program, err)
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	platform := v1.Platform{OS: settings["GOOS"], Architecture: settings["GOARCH"]}
	if platform.OS != "linux" || settings["CGO_ENABLED"] != "0" {
		return v1.Platform{}, fmt.Errorf("%s is no program for Linux that was built with CGO_ENABLED=0", program)
	}
	return platform, nil
}
