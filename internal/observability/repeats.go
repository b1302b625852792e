package observability

import (
	"sync"
	"time"
)

// RepeatAfter is the time after which the same event is reported again: events expire after an hour, and client-go's
// recorder passes 25 of them for one object, and one more every five minutes.
const RepeatAfter = 5 * time.Minute

// maxMessages is how many messages about an object are reported within RepeatAfter: some have a number that changes
// each time.
const maxMessages = 8

// maxObjects is how many objects are remembered before those without recent messages are forgotten.
const maxObjects = 1000

// Repeats prevents repeated events from using up the event budget of their object, so that a later event with another
// message is not lost. It is safe for concurrent use. The zero value is ready for use.
type Repeats struct {
	mu       sync.Mutex
	reported map[string]map[string]time.Time // by object and message
}

// Due reports whether a message about an object is to be reported now, and when it is the next time.
func (r *Repeats) Due(object, message string, now time.Time) (due bool, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages := r.reported[object]
	for text, at := range messages {
		if now.Sub(at).Abs() >= RepeatAfter {
			delete(messages, text)
		}
	}
	if at, ok := messages[message]; ok {
		return false, min(at.Add(RepeatAfter).Sub(now), RepeatAfter)
	}
	if len(messages) >= maxMessages {
		return false, RepeatAfter
	}
	if messages == nil {
		if r.reported == nil {
			r.reported = map[string]map[string]time.Time{}
		}
		if len(r.reported) >= maxObjects {
			r.prune(now)
		}
		messages = map[string]time.Time{}
		r.reported[object] = messages
	}
	messages[message] = now
	return true, RepeatAfter
}

// IsLatest reports whether a message is the one that was reported last about an object.
func (r *Repeats) IsLatest(object, message string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages := r.reported[object]
	at, reported := messages[message]
	for _, other := range messages {
		reported = reported && !other.After(at)
	}
	return reported
}

// prune forgets the objects whose messages may all be reported again.
func (r *Repeats) prune(now time.Time) {
	for object, messages := range r.reported {
		recent := false
		for _, at := range messages {
			recent = recent || now.Sub(at).Abs() < RepeatAfter
		}
		if !recent {
			delete(r.reported, object)
		}
	}
}

// Forget forgets what was reported about an object.
func (r *Repeats) Forget(object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reported, object)
}
