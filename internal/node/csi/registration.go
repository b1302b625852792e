package csi

import (
	"context"
	"time"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/albertofaria/pav/internal/observability"
)

// registration is what is known of a driver's registration with kubelet.
type registration struct {
	// wanted says that kubelet must know the driver. A driver that is only served is known to kubelet from an earlier
	// agent.
	wanted bool

	step     step
	answer   answer
	refusals int       // since kubelet last registered it
	told     time.Time // when its link was last made
	due      time.Time // when it is looked at again; zero for at once

	// asked has the services that were served when kubelet last began to register the driver.
	asked *Services
}

// step is how far the registration of a driver is.
type step int

const (
	unchecked step = iota // whether kubelet knows the driver is to be found out
	queued                // its link is to be made
	awaited               // kubelet has been told, and has not answered
	answered              // kubelet has answered
)

// answer is what kubelet said last about a driver.
type answer int

const (
	kubeletSilent answer = iota
	kubeletRegistered
	kubeletRefused
)

// isDue reports whether it is to be decided what comes next.
func (r *registration) isDue(now time.Time) bool {
	settled := r.step == queued || r.step == answered && r.answer == kubeletRegistered
	return r.wanted && !settled && !now.Before(r.due)
}

// registered notes that kubelet has the driver.
func (r *registration) registered() {
	r.step, r.answer, r.refusals = answered, kubeletRegistered, 0
}

// action is what is done about a driver's registration.
type action int

const (
	keepRegistration action = iota // kubelet has registered the driver, also if that was for an earlier agent
	tellKubelet                    // a new link makes kubelet register the driver, also if it has done so before
	askLater
)

// snapshot has the inputs of decideRegistration.
type snapshot struct {
	linked  bool // kubelet finds a link of this version
	refused bool // kubelet's last answer is a refusal
	known   bool // kubelet's record could be read
	has     bool // the record has the driver, with the topology keys that it reports now
}

// decideRegistration decides what is done about a driver that is served.
func decideRegistration(s snapshot) action {
	switch {
	case !s.linked:
		// A new driver, or the registration socket of an agent before this version, which nobody serves any more.
		return tellKubelet
	case s.refused:
		// Until 1.33 kubelet never tries again by itself. The record may still have the driver.
		return tellKubelet
	case !s.known:
		return askLater
	case s.has:
		// A new link would unregister the driver, and calls would fail until it is registered again.
		return keepRegistration
	default:
		// Kubelet missed the link, or asked for the topology when the keys were others.
		return tellKubelet
	}
}

// pace limits what is asked of kubelet and of the API server.
type pace struct {
	// slots is how many drivers kubelet registers at once. It makes about four requests for each, of 50 a second by
	// default, and those for the pods that it starts wait behind them.
	slots int

	// slotTimeout is when a driver that kubelet does not answer for gives its slot to the next one.
	slotTimeout time.Duration

	// silence is when a driver that kubelet does not answer for is looked at again.
	silence time.Duration

	// retry is when kubelet's record is read again after a failure.
	retry time.Duration

	// refusal is how long to wait before the link of a driver that kubelet has refused is made again. It doubles, up to maxRefusal.
	refusal, maxRefusal time.Duration
}

var defaultPace = pace{
	slots: 10, slotTimeout: 10 * time.Second, silence: time.Minute, retry: 10 * time.Second,
	refusal: 5 * time.Second, maxRefusal: 5 * time.Minute,
}

func (p pace) afterRefusals(number int) time.Duration {
	delay := p.refusal
	for range number - 1 {
		if delay *= 2; delay >= p.maxRefusal {
			return p.maxRefusal
		}
	}
	return delay
}

// registrationServer implements kubelet's plugin registration service for all drivers.
type registrationServer struct {
	registerapi.UnimplementedRegistrationServer
	registry *Registry
}

// GetInfo implements registerapi.RegistrationServer. With it, kubelet begins to register a driver.
func (s *registrationServer) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	d, err := driverOf(ctx)
	if err != nil {
		return nil, err
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	d.registration.asked = d.services.Load()
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              d.name,
		Endpoint:          s.registry.socket(d.name),
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus implements registerapi.RegistrationServer.
func (s *registrationServer) NotifyRegistrationStatus(ctx context.Context, r *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	d, err := driverOf(ctx)
	if err != nil {
		return nil, err
	}
	s.registry.answered(d, r.GetPluginRegistered())
	if r.GetPluginRegistered() {
		s.registry.log.Info("kubelet registered the driver", observability.Provisioner, d.name)
	} else {
		s.registry.log.Info("kubelet refused the driver", observability.Provisioner, d.name, observability.Reason, r.GetError())
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// answered notes kubelet's answer.
func (r *Registry) answered(d *driver, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := &d.registration
	switch {
	case !yes:
		state.refusals++
		state.step, state.answer = answered, kubeletRefused
		state.due = time.Now().Add(r.pace.afterRefusals(state.refusals))
	case state.asked != d.services.Load():
		// The topology keys have changed since kubelet asked.
		state.step, state.answer, state.due = unchecked, kubeletRegistered, time.Time{}
	default:
		state.registered()
	}
	r.wake()
}
