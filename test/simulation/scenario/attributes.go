package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/test/simulation/world"
)

// modifying are the names of the definitions whose volumes can be modified. Their VolumeAttributesClasses have the names of
// both: slow and fast are classes that can be had, odd is one with a parameter that the definitions do not know, and absent
// one that does not exist.
var modifying = []string{"linked", "snapped"}

var attributes = map[string]map[string]string{"slow": {"speed": "1"}, "fast": {"speed": "2"}, "odd": {"colour": "red"}}

// addAttributesClasses adds the VolumeAttributesClasses.
func addAttributesClasses(store *world.Store) error {
	var all error
	for _, driver := range modifying {
		for _, suffix := range []string{"fast", "odd", "slow"} {
			all = errors.Join(all, store.Create(people, attributesClass(driver, suffix, attributes[suffix])))
		}
	}
	return all
}

func attributesClass(driver, suffix string, parameters map[string]string) *storagev1.VolumeAttributesClass {
	return &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + suffix}, DriverName: driver, Parameters: parameters}
}

// attributesFor returns the name of a class for a claim, which is mostly one that the claim can have; "" for claims of other
// provisioners.
func (c *Copiers) attributesFor(class string) string {
	name, _, _ := strings.Cut(class, "-")
	if !slices.Contains(modifying, name) {
		return ""
	}
	return name + "-" + [...]string{"slow", "slow", "slow", "slow", "fast", "fast", "fast", "odd", "absent"}[c.World.Rand.IntN(9)]
}

// modify makes a bound claim name another VolumeAttributesClass.
func (c *Copiers) modify(claim *corev1.PersistentVolumeClaim) {
	name := c.attributesFor(*claim.Spec.StorageClassName)
	if name == "" {
		return
	}
	c.World.Counts["claims that want other attributes"]++
	_ = world.Change(c.World.Store, people, claim, func(o *corev1.PersistentVolumeClaim) { o.Spec.VolumeAttributesClassName = &name })
}

// redefine replaces a VolumeAttributesClass by one of the same name that stands for another speed.
func (c *Copiers) redefine() {
	driver, suffix := modifying[c.World.Rand.IntN(len(modifying))], [...]string{"slow", "fast"}[c.World.Rand.IntN(2)]
	c.World.Counts["VolumeAttributesClasses replaced"]++
	class := attributesClass(driver, suffix, map[string]string{"speed": fmt.Sprint(1 + c.World.Rand.IntN(9))})
	_ = c.World.Store.Delete(people, c.World.Store.KeyOf(class), nil, nil)
	_ = c.World.Store.Create(people, class)
}
