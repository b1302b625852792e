package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// maxBody is the maximum length of a request, in bytes: etcd accepts objects of up to 1.5 MiB, and a request has
	// two.
	maxBody = 3<<20 + 512<<10

	// smallBody is the maximum length of a small request, in bytes. Most definitions and pods are far shorter.
	smallBody = 128 << 10

	// smallPlaces and largePlaces are how many requests are answered at once. A decoded body needs up to 50 times its
	// length.
	smallPlaces, largePlaces = 16, 1

	// maxWait is how long a request waits for a slot: API servers wait ten seconds for the answer.
	maxWait = 4 * time.Second

	// readWithin is how long the client may take to send the body.
	readWithin = 3 * time.Second
)

// gate limits the cost of the requests of one webhook, from any client: in most clusters the port is open to all
// pods. The length of a body is known before any of it is read. Large bodies are read and answered one after another,
// and never delay small ones.
type gate struct {
	next         http.Handler
	small, large chan struct{}
}

func newGate(next http.Handler) *gate {
	return &gate{next: next, small: make(chan struct{}, smallPlaces), large: make(chan struct{}, largePlaces)}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code, problem := checkLength(r.ContentLength); problem != "" {
		refuse(w, code, problem)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxWait)
	defer cancel()
	large := r.ContentLength > smallBody
	if large && !enter(ctx, g.large) {
		refuse(w, http.StatusServiceUnavailable, "the webhook is busy")
		return
	}
	if large {
		defer func() { <-g.large }()
	}
	body, err := read(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the request has ended before its body")
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !large {
		// The body was read before, so a client that sends slowly needs no slot.
		if !enter(ctx, g.small) {
			refuse(w, http.StatusServiceUnavailable, "the webhook is busy")
			return
		}
		defer func() { <-g.small }()
	}
	g.next.ServeHTTP(w, r)
}

// checkLength returns the error in the length of a body. API servers always send it.
func checkLength(length int64) (code int, problem string) {
	switch {
	case length < 0:
		return http.StatusLengthRequired, "the request must say how long its body is"
	case length > maxBody:
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is longer than %d bytes", maxBody)
	default:
		return http.StatusOK, ""
	}
}

// enter acquires a slot, unless the context ends before one is free.
func enter(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// read reads a body whose length was checked.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	controller := http.NewResponseController(w)
	if err := controller.SetReadDeadline(time.Now().Add(readWithin)); err != nil {
		return nil, fmt.Errorf("limiting the time to read: %w", err)
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return body, controller.SetReadDeadline(time.Time{}) // the deadline would end the request
}

// refuse answers a request that is not checked, and closes its connection without reading the rest.
func refuse(w http.ResponseWriter, code int, problem string) {
	w.Header().Set("Connection", "close")
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1") // API servers then try again
	}
	http.Error(w, problem, code)
}
