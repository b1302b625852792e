package scenario

import (
	"time"

	"github.com/albertofaria/pav/test/simulation/world"
)

// Paced lets someone act now and then, not at every step.
type Paced struct {
	World *world.World
	Actor world.Actor

	// Pause is the mean time between two deeds.
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

// rest says when the next deed is due; until then, time can pass.
func (p *Paced) rest() {
	wait := time.Duration(p.World.Rand.ExpFloat64() * float64(p.Pause))
	p.due = time.Now().Add(wait)
	p.World.After(wait, func() {})
}
