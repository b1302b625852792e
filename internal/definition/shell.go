package definition

import (
	"path"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

var shells = []string{"sh", "bash", "ash", "dash", "ksh", "zsh", "mksh"}

// commands warns of dangerous shell code in the commands of a container.
func (p *pod) commands(container node) {
	p.program(container, slices.Concat(words(container.key("command")), words(container.key("args"))))
	for _, hook := range []string{"postStart", "preStop"} {
		p.program(container, words(container.key("lifecycle").key(hook).key("exec").key("command")))
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		p.program(container, words(container.key(probe).key("exec").key("command")))
	}
}

// words returns the words of a command. If the command is a template, the only word is that template.
func words(command node) []node {
	if _, isText := command.value.(string); isText {
		return []node{command}
	}
	return command.items()
}

// program checks the script in a command line, as in "busybox sh -ec …". The shell may be anywhere in it, as programs
// such as env and nsenter may run it.
func (p *pod) program(container node, words []node) {
	if script := scriptIn(words); script != nil {
		p.script(container, *script)
	}
}

// scriptIn returns the script of a shell in a command line; nil if there is none.
func scriptIn(words []node) *node {
	for i, word := range words {
		text, isPlain := word.text()
		if !isPlain || !slices.Contains(shells, path.Base(text)) {
			continue
		}
		if script := scriptOf(words[i+1:]); script != nil {
			return script
		}
	}
	return nil
}

// scriptOf returns the script among the words that follow a shell; nil if there is none. Words after the script are
// its parameters, which are data.
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

// optionOf returns the options in a word, as in "-ec" or "+x"; "-" for a long option.
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

// script warns of a script that cannot mount, creates /pav/ready too early, writes results after it, or becomes one line,
// and of values in it that a shell may interpret as commands.
func (p *pod) script(container, script node) {
	source, isText := script.value.(string)
	p.privilege(container, script, source)
	if early, found := readyTooEarly(source); found && p.workflow == pavv1.WorkflowStaging {
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: early.line, Column: early.column,
			Message: "/pav/ready is created while the command in the background may not have mounted /pav/volume yet, so that pods would write to a directory " +
				"of the node's disk; before it, add: until grep -q ' /pav/volume ' /proc/mounts; do kill -0 $! 2> /dev/null; sleep 0.1; done",
		})
	}
	if late, found := resultAfterReady(source); found && (p.workflow == pavv1.WorkflowCreation || p.workflow == pavv1.WorkflowSnapshotCreation) {
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: late.line, Column: late.column,
			Message: "this is written after /pav/ready is created, when the results of the pod have been read; write it before",
		})
	}
	p.torn(script, source)
	if !isText || !template.HasTemplate(source) {
		return
	}
	analysis := p.analyses[script.field]
	if analysis != nil && analysis.YAML {
		p.folded(script, source)
	}
	if analysis == nil || analysis.YAML && strings.Contains(source, "tobash") {
		return // not analysed, or a template that yields YAML, where other parts than this may be quoted
	}
	for _, flow := range analysis.Flows {
		if flow.Shell || flow.Safe {
			continue
		}
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: flow.Line, Column: flow.Column,
			Message: chooser(flow) + " chooses " + flow.Source + ", which reaches a shell unquoted and may contain any commands; add |tobash",
		})
	}
	for _, place := range quotedWords(source) {
		p.add(Finding{
			Severity: Warning, Field: script.field, Line: place.line, Column: place.column,
			Message: "|tobash adds the quotes that the value needs, and other quotes around it change the value; remove these quotes",
		})
	}
}

// torn warns of a script that copies a volume while pods may write to it. A script that looks at the kind of the source knows what it
// copies.
func (p *pod) torn(script node, source string) {
	of := anything
	switch {
	case p.unstaged:
		return
	case p.workflow == pavv1.WorkflowSnapshotCreation:
	case p.workflow == pavv1.WorkflowCreation && p.clones && !strings.Contains(source, "source.kind"):
		of = ofSource
	default:
		return
	}
	at, found := tornCopy(source, of)
	if !found {
		return
	}
	p.add(Finding{
		Severity: Warning, Field: script.field, Line: at.line, Column: at.column,
		Message: "a copy of what pods write to meanwhile is torn; add --reflink=always if the file system of the storage has that, or set snapshotCreation.whileStaged: Wait",
	})
}
