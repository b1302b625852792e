package definition

import (
	"path"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

var shells = []string{"sh", "bash", "ash", "dash", "ksh", "zsh", "mksh"}

// commands warns of what is dangerous in the programs that a container runs.
func (p *pod) commands(container node) {
	p.program(slices.Concat(words(container.key("command")), words(container.key("args"))))
	for _, hook := range []string{"postStart", "preStop"} {
		p.program(words(container.key("lifecycle").key(hook).key("exec").key("command")))
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		p.program(words(container.key(probe).key("exec").key("command")))
	}
}

// words returns the words of a command: one, which is no word, where the command is a template.
func words(command node) []node {
	if _, isText := command.value.(string); isText {
		return []node{command}
	}
	return command.items()
}

// program looks at the words of a program for a shell that is given commands, as in "busybox sh -ec …":
// wherever it is, so that env, nsenter and the like may run it.
func (p *pod) program(words []node) {
	for i, word := range words {
		text, isPlain := word.text()
		if !isPlain || !slices.Contains(shells, path.Base(text)) {
			continue
		}
		if script := scriptOf(words[i+1:]); script != nil {
			p.script(*script)
			return
		}
	}
}

// scriptOf returns which of the words behind a shell are its commands; nil if none are: those that
// follow them are parameters, which are data.
func scriptOf(words []node) *node {
	commands := false
	for i := 0; i < len(words); i++ {
		option, isOption := optionOf(words[i])
		if !isOption {
			if commands {
				return &words[i]
			}
			return nil // a file of commands
		}
		commands = commands || option[0] == '-' && strings.Contains(option, "c")
		if strings.HasSuffix(option, "o") || strings.HasSuffix(option, "O") {
			i++ // "-o pipefail"
		}
	}
	return nil
}

// optionOf returns which of its options a shell is given by a word, as in "-ec" or "+x"; "-" for long ones.
func optionOf(word node) (option string, ok bool) {
	text, _ := word.value.(string)
	switch {
	case len(text) < 2 || text[0] != '-' && text[0] != '+':
		return "", false
	case strings.HasPrefix(text, "--"):
		return "-", true
	default:
		return text, true
	}
}

// script warns of values in a shell's commands that are not what they look like.
func (p *pod) script(script node) {
	source, isText := script.value.(string)
	if early, found := readyTooEarly(source); found && p.workflow == pavv1.WorkflowStaging {
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: early.line, Column: early.column,
			Message: "/pav/ready is created while the command in the background may not have mounted /pav/volume yet, so that pods would write to a directory " +
				"of the node's disk; before it, add: until mountpoint -q /pav/volume; do kill -0 $! 2> /dev/null; sleep 0.1; done",
		})
	}
	if !isText || !hasTemplate(source) {
		return
	}
	analysis := p.analyses[script.field]
	if analysis == nil || analysis.YAML && strings.Contains(source, "tobash") {
		return // not analysed, or quoted in other words first
	}
	for _, flow := range analysis.Flows {
		if flow.Shell || flow.Safe {
			continue
		}
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: flow.Line, Column: flow.Column,
			Message: "whoever creates the claim chooses " + flow.Source + ", which reaches a shell as it is, and may be any commands; add |tobash",
		})
	}
	for _, place := range quotedWords(source) {
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: place.line, Column: place.column,
			Message: "|tobash makes a word with the quotes that it needs, so that in quotes it is another one; take away the quotes around it",
		})
	}
}
