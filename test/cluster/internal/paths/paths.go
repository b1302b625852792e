package paths

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// CacheVariable is the environment variable with the path of the cache.
	CacheVariable = "PAV_CLUSTER_CACHE"
	// StateVariable is the environment variable with the path of the cluster's state directory.
	StateVariable = "PAV_CLUSTER_STATE"

	rootModule    = "github.com/albertofaria/pav"
	clusterModule = rootModule + "/test/cluster"
)

// ErrNoCheckout means that neither the working directory nor the program's executable is in a checkout.
var ErrNoCheckout = errors.New("no checkout of " + rootModule + " above the working directory or the program")

// Cache returns the directory for compiled programs, images and the clusters' default state directories.
func Cache() (string, error) {
	if directory := os.Getenv(CacheVariable); directory != "" {
		return absolute(directory)
	}
	directory, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory (set %s): %w", CacheVariable, err)
	}
	return absolute(filepath.Join(directory, "pav-cluster"))
}

// SnapshotCRDs returns the directory of the CRDs of snapshots, which is in the directory of programs. Integration tests
// depend on its name.
func SnapshotCRDs(bin string) string { return filepath.Join(bin, "snapshot-crds") }

// Checkout returns the root of the checkout that contains the working directory. If there is none, it returns the root
// of the checkout that contains the program's executable.
func Checkout() (string, error) {
	var starts []string
	if directory, err := os.Getwd(); err == nil {
		starts = append(starts, directory)
	}
	if program, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(program))
	}
	for _, start := range starts {
		if root, found := checkoutAbove(start); found {
			return absolute(root)
		}
	}
	return "", ErrNoCheckout
}

func checkoutAbove(directory string) (string, bool) {
	for {
		if moduleOf(filepath.Join(directory, "test", "cluster", "go.mod")) == clusterModule {
			return directory, true
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", false
		}
		directory = parent
	}
}

// moduleOf returns the module path in a go.mod file. It returns an empty string if there is none.
func moduleOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if module, found := strings.CutPrefix(lines.Text(), "module "); found {
			return strings.TrimSpace(module)
		}
	}
	return ""
}

// FindState returns the state directory of the cluster: asked if it is not empty, else the directory in StateVariable,
// else a directory in the cache that belongs to the checkout.
func FindState(asked string) (State, error) {
	if asked == "" {
		asked = os.Getenv(StateVariable)
	}
	if asked != "" {
		directory, err := absolute(asked)
		return State{Directory: directory}, err
	}
	cache, err := Cache()
	if err != nil {
		return State{}, err
	}
	checkout, err := Checkout()
	if err != nil {
		return State{}, fmt.Errorf("choosing a state directory (or give one with --state): %w", err)
	}
	return State{Directory: filepath.Join(cache, "clusters", digest(checkout))}, nil
}

// absolute returns an absolute path. It resolves symbolic links in the existing part of the path, so that one directory
// has only one name.
func absolute(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", path, err)
	}
	rest := ""
	for existing := path; ; existing = filepath.Dir(existing) {
		resolved, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("resolving %q: %w", path, err)
		}
		rest = filepath.Join(filepath.Base(existing), rest)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
