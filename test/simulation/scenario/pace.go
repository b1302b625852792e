package scenario

import (
	"time"

	"github.com/albertofaria/pav/test/simulation/world"
)

// Paced limits an actor to one action now and then, instead of at every step.
type Paced struct {
	World *world.World
	Actor world.Actor

	// Pause is the mean time between two actions.
	Pause time.Duration

	due time.Time
}

// Choices implements world.Actor.
func (p *Paced) Choices(add func(world.Choice)) {
	if now := time.Now(); p.due.IsZero() || now.Before(p.due) {
		if p.due.IsZero() {
			p.rest()
		}
		return
	}
	p.Actor.Choices(func(c world.Choice) {
		do := c.Do
		c.Do = func() {
			do()
			p.rest()
		}
		add(c)
	})
}

// rest chooses the time of the next action. Its timer lets the world's time pass until then.
func (p *Paced) rest() {
	wait := time.Duration(p.World.Rand.ExpFloat64() * float64(p.Pause))
	p.due = time.Now().Add(wait)
	p.World.After(wait, func() {})
}
