package admission

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// untouched is the body of a request, and fails the test if it is read.
type untouched struct{ t *testing.T }

func (b untouched) Read([]byte) (int, error) {
	b.t.Error("the body is read")
	return 0, io.EOF
}

func TestGate_KnowsTheCostOfARequestBeforeItReadsIt(t *testing.T) {
	for name, test := range map[string]struct {
		length int64
		code   int
	}{
		"whose length is unknown":       {-1, http.StatusLengthRequired},
		"which is one byte too long":    {maxBody + 1, http.StatusRequestEntityTooLarge},
		"which says that it is endless": {1 << 60, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is answered") }))
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, untouched{t})
			request.ContentLength = test.length
			recorder := httptest.NewRecorder()
			g.ServeHTTP(recorder, request)
			if recorder.Code != test.code || recorder.Header().Get("Connection") != "close" {
				t.Errorf("got the code %d and %v, want %d and a closed connection", recorder.Code, recorder.Header(), test.code)
			}
		})
	}
}

// post sends a request with a body and a Content-Length. It returns the status code and the text of the answer.
func post(ctx context.Context, t *testing.T, url string, length int64, body io.Reader) (code int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.ContentLength = length
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}

func TestGate_LargeRequestsAreAnsweredOneByOne_AndDelayNoSmallOne(t *testing.T) {
	var now, most atomic.Int32
	begun, end := make(chan struct{}, 8), make(chan struct{})
	server := httptest.NewServer(newGate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if len(body) > smallBody {
			most.Store(max(most.Load(), now.Add(1)))
			begun <- struct{}{}
			<-end
			now.Add(-1)
		}
		_, _ = w.Write(body[:1])
	})))
	t.Cleanup(server.Close)
	large := bytes.Repeat([]byte("x"), smallBody+1)
	codes := make(chan int, 3)
	for range cap(codes) {
		go func() {
			code, _ := post(t.Context(), t, server.URL, int64(len(large)), bytes.NewReader(large))
			codes <- code
		}()
	}
	<-begun
	if code, answer := post(t.Context(), t, server.URL, 1, strings.NewReader("y")); code != http.StatusOK || answer != "y" {
		t.Errorf("a small request beside large ones: got %d %s", code, answer)
	}
	close(end)
	for range cap(codes) {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a large request: got %d", code)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d large requests were answered at once", most.Load())
	}
}

// A client that sends its body slowly loses its turn. It delays neither the next large request nor the next small one.
func TestGate_ASlowClientDelaysNoOther(t *testing.T) {
	server := httptest.NewServer(newGate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })))
	t.Cleanup(server.Close)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.WriteString(connection, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("x"), smallBody+1)
	begin := time.Now()
	if code, answer := post(t.Context(), t, server.URL, 1, strings.NewReader("y")); code != http.StatusOK {
		t.Errorf("a small request: got %d %s", code, answer)
	}
	if code, answer := post(t.Context(), t, server.URL, int64(len(large)), bytes.NewReader(large)); code != http.StatusOK {
		t.Errorf("a large request: got %d %s after %s", code, answer, time.Since(begin))
	}
}
