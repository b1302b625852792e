package commands

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Checker checks commands.
type Checker struct {
	*cluster

	root     string
	makefile string
}

// NewChecker returns a Checker for the repository at a path, whose bin has Helm.
func NewChecker(root string) (*Checker, error) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	known, err := newCluster(root)
	if err != nil {
		return nil, err
	}
	return &Checker{cluster: known, root: root, makefile: string(makefile)}, nil
}

// Check returns why a command does not run as printed.
func (c *Checker) Check(ctx context.Context, p Printed) error {
	err := c.checkFiles(p)
	switch program, args := p.Words[0], p.Words[1:]; {
	case err != nil:
	case program == "make":
		err = c.checkMake(ctx, args)
	case program == "helm":
		err = c.checkHelm(ctx, args)
	case args[0] == "pav":
		err = c.checkPlugin(ctx, args[1:])
	default:
		err = c.checkKubectl(args)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

// checkFiles checks that a page's files exist, in the repository or beside the page, that make makes them, or that the page says how to
// write them.
func (c *Checker) checkFiles(p Printed) error {
	page, _, _ := strings.Cut(p.Where, ":")
	if filepath.Ext(page) != ".md" {
		return nil
	}
	for _, word := range p.Words {
		name := word[strings.LastIndex(word, "=")+1:]
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		if exists(filepath.Join(c.root, name)) || exists(filepath.Join(c.root, filepath.Dir(page), name)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.root, page))
		if err != nil {
			return err
		}
		makefile, err := os.ReadFile(filepath.Join(c.root, "Makefile"))
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(makefile), "\n"+name+":") {
			return fmt.Errorf("there is no file %s, and the page does not say how to write it", name)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkMake asks make what it would do.
func (c *Checker) checkMake(ctx context.Context, args []string) error {
	args = append([]string{"--dry-run", "--no-print-directory"}, args...)
	command := exec.CommandContext(ctx, "make", args...)
	command.Dir = c.root
	if out, err := command.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	for _, arg := range args {
		name, value, isVariable := strings.Cut(arg, "=")
		switch {
		case !isVariable:
		case !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(c.makefile):
			return fmt.Errorf("the Makefile does not know %s", name)
		case slices.Contains(args, "kubectl") && name == "ARGS" && value != sample:
			inner, err := ofShell("ARGS", "kubectl "+value)
			if err != nil {
				return err
			}
			for _, p := range inner {
				if err := c.Check(ctx, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkHelm asks Helm for its help about a command with the flags.
func (c *Checker) checkHelm(ctx context.Context, args []string) error {
	helm := filepath.Join(c.root, "bin", "helm")
	out, err := exec.CommandContext(ctx, helm, append(args, "--help")...).CombinedOutput()
	if err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return fmt.Errorf("%w: %s", err, first)
	}
	if usage := "\n  helm " + args[0] + " "; !strings.Contains(string(out), usage) {
		return fmt.Errorf("helm has no command %q", args[0])
	}
	return nil
}
