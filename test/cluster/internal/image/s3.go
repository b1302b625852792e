package image

import (
	"context"
	"io"
	"slices"

	"github.com/albertofaria/pav/hack/image/archive"
)

// S3Name is the name of the image that is built from examples/9-buckets/Containerfile.
const S3Name = "docker.io/albertofaria/pav-s3-tools:0.2.0"

// s3Packages are the packages of the clients. The shell image has the other programs that examples/9-buckets/Containerfile installs.
var s3Packages = []string{"curl", "jq", "s3cmd", "s3fs"}

// S3 returns the shell image plus the machine's curl, jq, s3cmd and s3fs, what they need, and a file with functions for
// Bash, which finds it in its PATH. The image has no certificates of authorities. Missing packages are installed on the
// machine first.
func S3(ctx context.Context, progress io.Writer, functions string) (archive.Image, error) {
	image, err := Shell(ctx)
	if err != nil {
		return archive.Image{}, err
	}
	files, err := filesOf(ctx, progress, slices.Concat(s3cmdNeeds, s3Packages))
	if err != nil {
		return archive.Image{}, err
	}
	image.Entries = append(withFiles(image.Entries, files), archive.Entry{Path: "usr/bin/s3.sh", Mode: 0o644, Source: functions})
	return image, nil
}
