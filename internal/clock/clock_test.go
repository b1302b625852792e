package clock

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestHeard_CorrectsByTheLeastCertainAmount(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		local time.Time
		took  time.Duration
		want  time.Time
	}{
		"right":                       {noon.Add(300 * time.Millisecond), 0, noon.Add(300 * time.Millisecond)},
		"at the end of the second":    {noon.Add(time.Second), 0, noon.Add(time.Second)},
		"ahead":                       {noon.Add(10 * time.Minute), 0, noon.Add(time.Second)},
		"ahead, of a slow answer":     {noon.Add(10 * time.Minute), 4 * time.Second, noon.Add(5 * time.Second)},
		"behind":                      {noon.Add(-10 * time.Minute), 0, noon},
		"behind, of a slow answer":    {noon.Add(-10 * time.Minute), 4 * time.Second, noon},
		"within what a request takes": {noon.Add(3 * time.Second), 4 * time.Second, noon.Add(3 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(func() time.Time { return test.local })
			if got := c.Now(); !got.Equal(test.local) {
				t.Errorf("before any answer: %s", got)
			}
			c.Heard(noon, test.took)
			if got := c.Now(); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTransport_ReadsTheTimeOfTheAPIServer(t *testing.T) {
	true10 := time.Now().Add(10 * time.Minute).UTC().Truncate(time.Second)
	dates := []string{true10.Format(http.TimeFormat), "yesterday", ""}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = dates[:1]
		if dates = dates[1:]; w.Header().Get("Date") == "" {
			w.Header()["Date"] = nil
		}
	}))
	defer server.Close()
	c := New(time.Now)
	httpClient := &http.Client{Transport: c.Transport(server.Client().Transport)}
	for _, what := range []string{"a date", "a date that is none", "no date"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := httpClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if ahead := time.Until(c.Now()); ahead < 9*time.Minute || ahead > 11*time.Minute {
			t.Errorf("after an answer with %s, the clock is ahead by %s", what, ahead)
		}
	}
	server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := httpClient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Error("a server that has ended answered")
	}
}
