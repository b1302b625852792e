package licence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// text matches the names of files with a licence, or with notices that must be passed on.
var text = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([-._].*)?$`)

// Program is a Go program for a platform.
type Program struct {
	// Directory is one of the program's module, and Package is its package there.
	Directory, Package string
	GOOS, GOARCH       string
}

// Collect returns the licences and notices of all packages that are linked into a program, but for those of the
// program's own module. It fails if a package has none.
func Collect(ctx context.Context, program Program) (string, error) {
	packages, err := program.packages(ctx)
	if err != nil {
		return "", err
	}
	goroot, err := program.ask(ctx, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	var errs []error
	found := map[string]map[string]string{} // the names and paths of files, by origin
	for _, linked := range packages {
		origin, root := linked.origin(strings.TrimSpace(string(goroot)))
		if root == "" {
			continue
		}
		files, err := search(root, linked.Dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("searching for the licence of %s: %w", linked.ImportPath, err))
		}
		if found[origin] == nil {
			found[origin] = map[string]string{}
		}
		maps.Copy(found[origin], files)
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return join(found)
}

// search returns the files with licences of a package, by their names below the root of its module. A directory of a
// module may have a licence of its own.
func search(root, directory string) (map[string]string, error) {
	below, err := filepath.Rel(root, directory)
	if err != nil || !filepath.IsLocal(below) {
		return nil, fmt.Errorf("%s is not below %s", directory, root)
	}
	files := map[string]string{}
	for {
		entries, err := os.ReadDir(filepath.Join(root, below))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && text.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
				name := filepath.Join(below, entry.Name())
				files[name] = filepath.Join(root, name)
			}
		}
		if below == "." {
			break
		}
		below = filepath.Dir(below)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is none in %s", root)
	}
	return files, nil
}

// join returns the text of all files, each below a line that says where it is from.
func join(found map[string]map[string]string) (string, error) {
	var all strings.Builder
	for _, origin := range slices.Sorted(maps.Keys(found)) {
		for _, name := range slices.Sorted(maps.Keys(found[origin])) {
			content, err := os.ReadFile(found[origin][name])
			if err != nil {
				return "", fmt.Errorf("reading a licence of %s: %w", origin, err)
			}
			fmt.Fprintf(&all, "==== %s: %s\n\n%s\n\n", origin, name, strings.TrimSpace(string(content)))
		}
	}
	return all.String(), nil
}
