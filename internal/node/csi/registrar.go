package csi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// Run registers drivers with kubelet until ctx ends. A driver that kubelet has registered for an earlier agent stays
// registered. The other ones are registered a few at a time. The sockets of all drivers should be served before.
func (r *Registry) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		case <-timer.C:
		}
		r.decide(ctx)
		timer.Reset(r.tell())
	}
}

// wake makes Run look at the drivers.
func (r *Registry) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// decide decides about the drivers that are due. Kubelet's record is read only if a decision depends on it.
func (r *Registry) decide(ctx context.Context) {
	now := time.Now()
	due, asks := r.due(now)
	var record kubeletDrivers
	known := false
	if asks {
		reading, cancel := context.WithTimeout(ctx, r.pace.retry)
		defer cancel()
		var err error
		if record, err = r.record.read(reading); err != nil {
			r.log.Info("kubelet's record of drivers cannot be read yet", observability.Reason, err.Error())
		}
		known = err == nil
	}
	kept := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range due {
		state := &d.registration
		if r.drivers[d.name] != d || !state.isDue(now) {
			continue // It was removed, or kubelet has answered since.
		}
		s := r.snapshot(d)
		s.known, s.has = known, known && record.has(d.name, d.services.Load().TopologyKeys)
		switch decideRegistration(s) {
		case keepRegistration:
			state.registered()
			kept++
		case tellKubelet:
			r.enqueue(d)
		case askLater:
			state.due = now.Add(r.pace.retry)
		}
	}
	if kept > 0 {
		r.log.Info("kubelet has drivers already", "number", kept)
	}
}

// due returns the drivers that are due, and whether a decision depends on kubelet's record.
func (r *Registry) due(now time.Time) (due []*driver, asks bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.drivers {
		if d.registration.isDue(now) {
			due = append(due, d)
			asks = asks || decideRegistration(r.snapshot(d)) == askLater
		}
	}
	return due, asks
}

// snapshot must be called with the lock held. It leaves out kubelet's record.
func (r *Registry) snapshot(d *driver) snapshot {
	target, err := os.Readlink(r.registration(d.name))
	return snapshot{linked: err == nil && target == linkTarget(d.name), refused: d.registration.answer == kubeletRefused}
}

// enqueue must be called with the lock held. No workflow pod starts before PaV's own driver is registered.
func (r *Registry) enqueue(d *driver) {
	d.registration.step = queued
	if d.name == pavv1.Driver {
		r.queue = slices.Insert(r.queue, 0, d)
	} else {
		r.queue = append(r.queue, d)
	}
}

// tell tells kubelet of the next drivers, and returns when Run has to look at the drivers again.
func (r *Registry) tell() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	free := r.pace.slots
	for _, d := range r.drivers {
		if d.registration.step == awaited && now.Sub(d.registration.told) < r.pace.slotTimeout {
			free--
		}
	}
	for free > 0 && len(r.queue) > 0 {
		d := r.queue[0]
		r.queue = slices.Delete(r.queue, 0, 1)
		state := &d.registration
		if r.drivers[d.name] != d || state.step != queued {
			continue // It was removed, or kubelet has answered since.
		}
		if err := r.link(d.name); err != nil {
			r.log.Error(err, "a driver cannot be registered", observability.Provisioner, d.name)
			state.step, state.due = unchecked, now.Add(r.pace.retry)
			continue
		}
		state.step, state.told, state.due = awaited, now, now.Add(r.pace.silence)
		free--
	}
	return r.next(now)
}

// next must be called with the lock held.
func (r *Registry) next(now time.Time) time.Duration {
	next := r.pace.silence
	for _, d := range r.drivers {
		state := &d.registration
		if state.wanted && state.step != queued && (state.step != answered || state.answer == kubeletRefused) {
			next = min(next, state.due.Sub(now))
		}
		if state.step == awaited && len(r.queue) > 0 {
			next = min(next, state.told.Add(r.pace.slotTimeout).Sub(now))
		}
	}
	return max(next, time.Millisecond)
}

// link makes kubelet register a driver, which must be served. Kubelet watches the directory: it registers what is new
// there, first unregisters a driver whose path is new again, and unregisters what is removed. What it finds is a link to
// the driver's socket. So it sees nothing when the next agent serves that socket, and the driver stays registered.
// When kubelet is restarted it follows all links. It must be called with the lock held.
func (r *Registry) link(name string) error {
	path := r.registration(name)
	temporary := temporaryPath(path)
	if err := removeFile(temporary); err != nil {
		return err
	}
	if err := os.Symlink(linkTarget(name), temporary); err != nil {
		return fmt.Errorf("linking a socket: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("linking a socket: %w", err)
	}
	return nil
}

// linkTarget is what the link of a driver contains. It is relative, since kubelet's directory can have several names.
func linkTarget(name string) string {
	return filepath.Join("..", "plugins", pavv1.Driver, "csi", socketName(name))
}
