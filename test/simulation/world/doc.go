// Package world simulates the environment of PaV's agents: an API server, a cache for each agent, a clock, and one
// random number generator. A simulation is a sequence of steps. The seed of the random number generator determines
// all steps.
//
// A simulation runs inside a bubble of testing/synctest and therefore has virtual time. When a goroutine of an agent
// calls the API server, the world parks the goroutine and continues the call in a later step. The other goroutines of
// an agent run only when a step wakes them.
//
// The API server is simpler than a real one. It has no schemas and therefore accepts invalid fields. Its only admission
// policies and webhooks are the hooks of its store. It has no managed fields, and its lists are never paged. The
// integration tests compare the rest of its behavior with a real API server.
//
// The package has no rules about volumes. The neighboring packages define the actors and the invariants of a
// simulation.
package world
