package definition

import (
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func isLabel(text string) bool     { return len(validation.IsDNS1123Label(text)) == 0 }
func isSubdomain(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

const noLabel = "%s must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit first and last"

// containers checks what the types alone cannot express about containers. Lists of containers may be templates.
func (p *pod) containers() {
	names := map[string]bool{}
	volumes, known := p.volumeNames()
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range p.spec.key(list).items() {
			if p.over(container.field) {
				return
			}
			if !container.isMapping() && container.value != nil {
				continue // a template, or of the wrong type
			}
			p.name(container.key("name"), names)
			p.image(container.key("image"))
			p.environment(container)
			p.mounts(container, volumes, known)
			p.resources(container.key("resources"))
			p.commands(container)
		}
	}
}

// name checks the name of a container or a volume, which must be unique.
func (p *pod) name(name node, taken map[string]bool) {
	text, isPlain := name.text()
	switch {
	case name.value == nil:
		p.errorf(name.field, "is missing")
	case !isPlain:
	case !isLabel(text):
		p.errorf(name.field, noLabel, quote(text))
	case taken[text]:
		p.errorf(name.field, "%s is there twice", quote(text))
	default:
		taken[text] = true
	}
}

func (p *pod) image(image node) {
	text, isPlain := image.text()
	switch {
	case image.value == nil:
		p.errorf(image.field, "is missing")
	case !isPlain:
	case strings.TrimSpace(text) == "":
		p.errorf(image.field, "is empty")
	case text != strings.TrimSpace(text):
		p.errorf(image.field, "has white space before or after it")
	case !isPinned(text):
		p.warnf(image.field, "%s may be a different image tomorrow; add a version tag or a digest", quote(text))
	}
}

// isPinned reports whether an image has a tag that is not "latest", or a digest.
func isPinned(image string) bool {
	if strings.Contains(image, "@") {
		return true
	}
	_, tag, tagged := strings.Cut(path.Base(image), ":")
	return tagged && tag != "latest"
}

func (p *pod) environment(container node) {
	names := map[string]bool{}
	for _, variable := range container.key("env").items() {
		if p.over(variable.field) {
			return
		}
		name := variable.key("name")
		text, isPlain := name.text()
		switch {
		case !variable.isMapping():
		case name.value == nil:
			p.errorf(name.field, "is missing")
		case !isPlain:
		case len(validation.IsRelaxedEnvVarName(text)) > 0:
			p.errorf(name.field, "%s is not a valid variable name: use printable ASCII characters except '='", quote(text))
		case names[text]:
			p.warnf(name.field, "%s is set twice, and the last value is used", quote(text))
		default:
			names[text] = true
		}
		if value := variable.key("value"); value.value != "" && value.isThere() && variable.key("valueFrom").isThere() {
			p.errorf(variable.field, "has both value and valueFrom; remove one of them")
		}
		p.plainSecret(variable)
	}
}

func (p *pod) mounts(container node, volumes map[string]bool, known bool) {
	paths := map[string]bool{}
	for _, kind := range []struct{ list, path string }{{"volumeMounts", "mountPath"}, {"volumeDevices", "devicePath"}} {
		for _, mount := range container.key(kind.list).items() {
			if p.over(mount.field) {
				return
			}
			if mount.isMapping() {
				p.mounted(mount.key("name"), volumes, known)
				p.mountPath(mount.key(kind.path), paths)
			}
		}
	}
}

// maxCompared is the maximum number of names that a misspelt name is compared with.
const maxCompared = 100

// mounted checks that the volume of a volume mount exists.
func (p *pod) mounted(name node, volumes map[string]bool, known bool) {
	text, isPlain := name.text()
	switch {
	case name.value == nil:
		p.errorf(name.field, "is missing")
	case isPlain && known && !volumes[text]:
		hint := "; there is none in spec.volumes"
		if len(volumes) <= maxCompared {
			if near := Nearest(text, slices.Sorted(maps.Keys(volumes))); near != "" {
				hint = "; did you mean " + quote(near) + "?"
			}
		}
		p.errorf(name.field, "no volume is called %s%s", quote(text), hint)
	}
}

func (p *pod) mountPath(field node, taken map[string]bool) {
	text, isPlain := field.text()
	switch {
	case field.value == nil:
		p.errorf(field.field, "is missing")
	case !isPlain:
	case text == "":
		p.errorf(field.field, "is empty")
	case strings.Contains(text, ":"):
		p.errorf(field.field, "must not contain ':'")
	case taken[text]:
		p.errorf(field.field, "%s is the path of two mounts", quote(text))
	default:
		taken[text] = true
		if !path.IsAbs(text) {
			p.warnf(field.field, "%s is not an absolute path; it is used as %s", quote(text), quote("/"+text))
		}
	}
}

// resources compares requests, which were checked before, with limits.
func (p *pod) resources(resources node) {
	requests, _ := resources.key("requests").value.(map[string]any)
	for name := range requests {
		request, limit := resources.key("requests").key(name), resources.key("limits").key(name)
		low, lowErr := quantityOf(request)
		high, highErr := quantityOf(limit)
		if lowErr == nil && highErr == nil && low.Cmp(high) > 0 {
			p.errorf(request.field, "is above the limit")
		}
	}
}
