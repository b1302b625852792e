package definition

import (
	"regexp"
	"slices"
	"strings"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

var (
	// mentionsCreated and mentionsCredentials match a text that names the file or the directory, or may make it after cd /pav.
	mentionsCreated     = regexp.MustCompile(`/pav/created\b|\bcd[ \t]+['"]?/pav['"]?[ \t\n;&](?s:.*)\bcreated\b`)
	mentionsCredentials = regexp.MustCompile(`/pav/credentials\b|\bcd[ \t]+['"]?/pav['"]?[ \t\n;&](?s:.*)\bcredentials\b`)

	// randomFilter is the filter random.
	randomFilter = regexp.MustCompile(`\|\s*random\b`)
)

// mentions reports whether a text of a pod template matches. It is sure that none does only if it knows all scripts of the pod.
func mentions(pod node, pattern *regexp.Regexp) (mentioned, sure bool) {
	eachText(pod, maxDepth, func(_ node, text string) { mentioned = mentioned || pattern.MatchString(text) })
	return mentioned, runsOnlyScripts(pod.key("spec"))
}

// runsOnlyScripts reports whether all containers of a pod certainly run the scripts in the pod template, and no programs of their images.
func runsOnlyScripts(spec node) bool {
	containers := spec.key("containers")
	if !containers.isKnownList() || len(containers.items()) == 0 || !spec.key("initContainers").isKnownList() {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(containers.items(), spec.key("initContainers").items()), func(container node) bool {
		return scriptIn(slices.Concat(words(container.key("command")), words(container.key("args")))) == nil
	})
}

var (
	// secretWord is a word in the name of a variable that holds a secret, and placeWord the last word of one that only says where
	// a secret is, or what it is called.
	secretWord = regexp.MustCompile(`(?i)(?:^|[_.-])[A-Z0-9]*(?:PASSWORD|PASSWD|SECRET|TOKEN)S?(?:[_.-]|$)|(?:^|[_.-])(?:[A-Z0-9]*(?:API|ACCESS|PRIVATE|SECRET))?KEYS?(?:[_.-]|$)`)
	placeWord  = regexp.MustCompile(`(?i)[_.-](?:FILE|PATH|DIR|DIRECTORY|NAME|ID|URL|URI|ENDPOINT|PREFIX|SUFFIX|TYPE|LENGTH|SIZE|ALGORITHM)$|(?-i)[a-z](?:File|Path|Dir|Name|I[dD]|Url|URL|Prefix)$`)
)

// plainSecret refuses a secret of the administrator that is written in the template of a grant pod: all who may read pods could read it.
func (p *pod) plainSecret(variable node) {
	name, _ := variable.key("name").text()
	value, isText := variable.key("value").value.(string)
	if p.workflow != pavv1.WorkflowGrant || !isText || strings.TrimSpace(value) == "" || !secretWord.MatchString(name) || placeWord.MatchString(name) {
		return
	}
	const words = "has a secret by its name, which all who may read pods could read; put it in a Secret of the pod's namespace, and use valueFrom.secretKeyRef or envFrom"
	if template.HasTemplate(value) {
		p.warnf(variable.key("value").field, words) // it may be none
	} else {
		p.errorf(variable.key("value").field, words)
	}
}

// random warns of the filter random in templates that make credentials: what it chooses follows from UIDs, which many can read.
func (c *check) random(section, field, source string) {
	if section != "bucketAccessGrant" {
		return
	}
	for _, at := range randomFilter.FindAllStringIndex(source, -1) {
		before := source[:at[0]]
		if max(strings.LastIndex(before, "{{"), strings.LastIndex(before, "{%")) <= max(strings.LastIndex(before, "}}"), strings.LastIndex(before, "%}")) {
			continue // a program that is called random
		}
		position := placeIn(source, at[0])
		c.add(Finding{
			Severity: Warning, Field: field, Line: position.line, Column: position.column,
			Message: "|random is no source of secrets: what it chooses follows from UIDs, and is the same in each attempt; read /dev/urandom in the script",
		})
	}
}
