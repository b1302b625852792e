package invariants

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/simulation/world"
)

// recent is how many of an agent's requests lie between a read and a step that rests on it, at most: a pass
// makes a dozen, and others go on beside it.
const recent = 150

// reads is what an agent was told by the API server itself.
type reads struct {
	requests int
	objects  map[inPass]read
	lists    map[string]read
	written  map[string]int  // when it wrote each PavStage
	bound    map[binding]int // when it was told last that a PersistentVolume is a claim's
}

// binding is a claim that has a PersistentVolume.
type binding struct {
	pv    string
	claim types.UID
}

// inPass is an object, as a pass was told of it. That of the empty pass is what the agent was told last.
type inPass struct {
	pass string
	key  world.Key
}

// read is an answer: an object, or nil, or the objects of a kind.
type read struct {
	at      int
	object  client.Object
	objects []client.Object
}

// Heard hears of each request that is answered well, when it is.
func (i *Invariants) Heard(c *world.Call) {
	r := i.reads[c.By]
	if r == nil {
		r = &reads{objects: map[inPass]read{}, lists: map[string]read{}, written: map[string]int{}, bound: map[binding]int{}}
		i.reads[c.By] = r
	}
	r.requests++
	switch verb, kind, namespace, name := parse(c); verb {
	case "get":
		key := world.Key{Kind: kind, Namespace: namespace, Name: name}
		told := read{at: r.requests, object: i.store.Find(key)}
		r.objects[inPass{key: key}] = told
		r.objects[inPass{pass: c.Pass, key: key}] = told
		if pv, ok := told.object.(*corev1.PersistentVolume); ok && pv.Status.Phase != corev1.VolumeReleased && pv.Spec.ClaimRef != nil {
			r.bound[binding{pv: name, claim: pv.Spec.ClaimRef.UID}] = r.requests
		}
	case "create":
		if kind == "PavStage" {
			r.written[name] = r.requests
		}
	case "list":
		r.lists[kind] = read{at: r.requests, objects: i.store.All(kind)}
	}
}

// parse returns what a request is, as its text says.
func parse(c *world.Call) (verb, kind, namespace, name string) {
	words := strings.Fields(strings.TrimPrefix(c.What, c.By+" "))
	if len(words) < 2 {
		return "", "", "", ""
	}
	verb, kind = words[0], words[1]
	if len(words) > 2 {
		name = words[2]
		if before, after, found := strings.Cut(name, "/"); found {
			namespace, name = before, after
		}
	}
	return verb, kind, namespace, name
}

// read returns what an agent was told of an object a short time ago: nil where there was none. What it was told in
// the pass that acts counts before what another pass was told since. It is a violation if it has not asked.
func (i *Invariants) read(by, step string, key world.Key) client.Object {
	r := i.reads[by]
	if r == nil {
		i.failf(6, "%s %s without a word of the API server", by, step)
		return nil
	}
	found, asked := r.objects[inPass{pass: i.Pass(), key: key}]
	if !asked {
		found, asked = r.objects[inPass{key: key}]
	}
	if !asked || r.requests-found.at > recent {
		i.failf(6, "%s %s, and has not asked the API server for %s", by, step, key)
	}
	return found.object
}

// list returns the objects of a kind that an agent was told of a short time ago.
func list[T client.Object](i *Invariants, by, step, kind string) []T {
	r := i.reads[by]
	if r == nil {
		i.failf(6, "%s %s without a word of the API server", by, step)
		return nil
	}
	found, asked := r.lists[kind]
	if !asked || r.requests-found.at > recent {
		i.failf(6, "%s %s, and has not asked the API server for the list of kind %s", by, step, kind)
	}
	all := make([]T, 0, len(found.objects))
	for _, object := range found.objects {
		if typed, ok := object.(T); ok {
			all = append(all, typed)
		}
	}
	return all
}

// step names a step that cannot be taken back.
func step(format string, arguments ...any) string { return fmt.Sprintf(format, arguments...) }
