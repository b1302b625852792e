package definition

import (
	"regexp"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// mounting is a command that only a privileged container can run. "mount" alone prints what is mounted.
var mounting = regexp.MustCompile(`(?m)(?:^|[;&|({!]|\b(?:then|do|else|if|until|while|exec)\b)[ \t]*(mount[ \t]+[^\s|;&]|umount[ \t]|losetup[ \t]|cryptsetup[ \t])`)

// privilege warns of a script that mounts in a container that is certainly not privileged.
func (p *pod) privilege(container node, script node, source string) {
	at := mounting.FindStringSubmatchIndex(withBlankComments(source))
	if at == nil || mayMount(container) {
		return
	}
	position := placeIn(source, at[2])
	p.add(Finding{
		Severity: Warning, Field: script.field, Line: position.line, Column: position.column,
		Message: quote(strings.Fields(source[at[2]:])[0]) + " fails in a container that is not privileged; set securityContext: {privileged: true} in this container",
	})
}

// mayMount reports whether a container is privileged, has a capability that lets it mount, or may have it because of a
// template.
func mayMount(container node) bool {
	capabilities := container.key("securityContext").key("capabilities")
	for _, field := range []node{capabilities, capabilities.key("add")} {
		if _, isTemplate := field.value.(string); isTemplate {
			return true
		}
	}
	return containerMayBePrivileged(container) || slices.ContainsFunc(capabilities.key("add").items(), func(name node) bool {
		text, isPlain := name.text()
		return !isPlain || slices.Contains([]string{"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"}, text)
	})
}

// folded warns of a script whose template sets yaml: as YAML, lines of plain text are one line.
func (p *pod) folded(script node, source string) {
	lines := slices.DeleteFunc(strings.Split(source, "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || strings.HasPrefix(line, "{%") || strings.HasPrefix(line, "{#")
	})
	if len(lines) < 2 || strings.ContainsAny(strings.TrimSpace(lines[0])[:1], `|>"'-[{`) {
		return
	}
	p.warnf(script.field, "the template sets yaml, so that the lines of this script become one line; remove {%% set yaml = true %%}, which only fields with lists, mappings and numbers need")
}

// restarts warns of a staging pod that is always restarted, and so never completes, and that does not create /pav/ready.
// It reports nothing if it does not know what a container runs.
func (p *pod) restarts() {
	policy := p.spec.key("restartPolicy")
	if text, _ := policy.text(); p.workflow != pavv1.WorkflowStaging || text != "Always" {
		return
	}
	containers := p.spec.key("containers").items()
	for _, container := range containers {
		command := words(container.key("command"))
		if len(command) == 0 {
			return
		}
		for _, word := range append(command, words(container.key("args"))...) {
			if source, isText := word.value.(string); !isText || strings.Contains(source, "/pav/ready") {
				return
			}
		}
	}
	p.warnf(policy.field, "the staging pod never completes if it is always restarted, and no container creates /pav/ready, so that the volume never becomes available; remove this, or create /pav/ready")
}
