package invariants

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/simulation/world"
)

// recent is the maximum number of an agent's requests between a read and a step that depends on it. One reconcile pass
// makes about a dozen requests, and other passes run concurrently.
const recent = 150

// reads has the answers that an agent has received from the API server itself, not from its cache. Times are counts of
// the agent's requests.
type reads struct {
	requests int
	objects  map[inPass]read
	lists    map[string][]read // the recent ones of each kind, the oldest first
	begun    map[string]int    // when the agent made the first request of each pass
	written  map[string]int    // when the agent created each PavStage
	bound    map[binding]int   // when the agent last read a PersistentVolume that was bound to a claim
}

// binding is a PersistentVolume and its claim.
type binding struct {
	pv    string
	claim types.UID
}

// inPass is an object and the reconcile pass that read it. With an empty pass, it stands for the agent's last read of
// the object.
type inPass struct {
	pass string
	key  world.Key
}

// read is an answer of the API server: an object, nil for an object that does not exist, or all objects of a kind.
type read struct {
	at      int
	pass    string // of a list
	object  client.Object
	objects []client.Object
}

// Heard records each request that succeeded, or whose object does not exist, when it takes effect.
func (i *Invariants) Heard(c *world.Call) {
	r := i.reads[c.By]
	if r == nil {
		r = &reads{objects: map[inPass]read{}, lists: map[string][]read{}, begun: map[string]int{}, written: map[string]int{}, bound: map[binding]int{}}
		i.reads[c.By] = r
	}
	r.requests++
	if r.begun[c.Pass] == 0 {
		r.begun[c.Pass] = r.requests
	}
	i.count(c)
	switch verb, kind, namespace, name := parse(c); verb {
	case "get":
		key := world.Key{Kind: kind, Namespace: namespace, Name: name}
		answer := read{at: r.requests, object: i.store.Find(key)}
		r.objects[inPass{key: key}] = answer
		r.objects[inPass{pass: c.Pass, key: key}] = answer
		if pv, ok := answer.object.(*corev1.PersistentVolume); ok && pv.Status.Phase != corev1.VolumeReleased && pv.Spec.ClaimRef != nil {
			r.bound[binding{pv: name, claim: pv.Spec.ClaimRef.UID}] = r.requests
		}
	case "create":
		if kind == "PavStage" {
			r.written[name] = r.requests
		}
	case "list":
		lists := slices.DeleteFunc(r.lists[kind], func(old read) bool { return r.requests-old.at > recent })
		r.lists[kind] = append(lists, read{at: r.requests, pass: c.Pass, objects: i.store.All(kind)})
	}
}

// parse returns the parts of a request's description.
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

// read returns an object as the agent has read it recently, or nil if it did not exist. A read in the current pass
// takes precedence over later reads in other passes. The absence of a recent read is a violation.
func (i *Invariants) read(by, step string, key world.Key) client.Object {
	r := i.reads[by]
	if r == nil {
		i.failf(6, "%s %s without a word of the API server", by, step)
		return nil
	}
	// The requests of other passes make a read of this pass no older.
	if found, asked := r.objects[inPass{pass: i.Pass(), key: key}]; asked && i.Pass() != "" {
		return found.object
	}
	found, asked := r.objects[inPass{key: key}]
	if !asked || r.requests-found.at > recent {
		i.failf(6, "%s %s, and has not asked the API server for %s", by, step, key)
	}
	return found.object
}

// list returns the objects of a kind as the agent has listed them recently: in the current pass or, as passes share
// lists, in another one since the current pass began. The absence of a recent list is a violation.
func list[T client.Object](i *Invariants, by, step, kind string) []T {
	r := i.reads[by]
	if r == nil {
		i.failf(6, "%s %s without a word of the API server", by, step)
		return nil
	}
	lists := r.lists[kind]
	if len(lists) == 0 || r.requests-lists[len(lists)-1].at > recent {
		i.failf(6, "%s %s, and has not asked the API server for the list of kind %s", by, step, kind)
		return nil
	}
	found := r.heardIn(i.Pass(), lists)
	all := make([]T, 0, len(found.objects))
	for _, object := range found.objects {
		if typed, ok := object.(T); ok {
			all = append(all, typed)
		}
	}
	return all
}

// heardIn returns the list that a pass knows. What other passes have heard later says nothing about it.
func (r *reads) heardIn(pass string, lists []read) read {
	for n := len(lists) - 1; n >= 0 && pass != ""; n-- {
		if lists[n].pass == pass {
			return lists[n]
		}
	}
	for _, l := range lists {
		if begun := r.begun[pass]; pass != "" && begun > 0 && l.at >= begun {
			return l
		}
	}
	return lists[len(lists)-1]
}

// step describes a step that cannot be undone.
func step(format string, arguments ...any) string { return fmt.Sprintf(format, arguments...) }
