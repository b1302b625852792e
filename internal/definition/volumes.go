package definition

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/albertofaria/pav/internal/workflow"
)

// volumes checks what the types alone cannot express about volumes.
func (p *pod) volumes() {
	names := map[string]bool{}
	for _, volume := range p.spec.key("volumes").items() {
		if p.over(volume.field) {
			return
		}
		if !volume.isMapping() {
			continue
		}
		p.name(volume.key("name"), names)
		p.source(volume)
	}
}

// source checks that a volume has exactly one source.
func (p *pod) source(volume node) {
	var sources []string
	for key := range volume.value.(map[string]any) {
		if key != "name" && volume.key(key).isThere() {
			sources = append(sources, key)
		}
	}
	slices.Sort(sources)
	if len(sources) > 1 {
		p.errorf(volume.field, "is both %s and %s; make two volumes of it", sources[0], sources[1])
	}
	if hostPath := volume.key("hostPath"); hostPath.isMapping() && hostPath.key("path").value == nil {
		p.errorf(hostPath.key("path").field, "is missing")
	}
}

// volumeNames returns the names of the pod's volumes, including PaV's own, and whether all of them are known.
func (p *pod) volumeNames() (names map[string]bool, known bool) {
	volumes := p.spec.key("volumes")
	names = map[string]bool{workflow.PavVolume: true}
	for _, volume := range volumes.items() {
		name, isPlain := volume.key("name").text()
		if !isPlain {
			return nil, false
		}
		names[name] = true
	}
	return names, volumes.isKnownList()
}

var errNoQuantity = errors.New("no quantity is known")

// quantityOf returns the quantity in a field, if it is known.
func quantityOf(n node) (resource.Quantity, error) {
	text, isPlain := n.text()
	if isNumber(n.value) {
		text, isPlain = fmt.Sprint(n.value), true
	}
	const longest = 64
	if !isPlain || len(text) > longest || hugeExponent.MatchString(text) {
		return resource.Quantity{}, errNoQuantity
	}
	return resource.ParseQuantity(text)
}
