// Package world is the world that PaV's agents live in, without the agents: an API server, what each reader
// has seen of it so far, a clock, and one source of chance. All that happens is one step after another, and
// follows from a seed.
//
// It runs inside a bubble of testing/synctest, whose time is virtual. An agent's goroutine that calls the API
// server is parked until the world lets its call go on; nothing else of an agent runs meanwhile but what a
// step has woken.
//
// The API server is simpler than the real one: it has no schemas, so that it refuses no invalid field; no
// policies and webhooks but those that are hooked in; no managed fields; and its lists are never paged. The
// integration tests hold the rest to the real one.
//
// The package knows nothing of volumes: who acts, and what must be true, is said by the packages beside it.
package world
