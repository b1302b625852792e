// Package flood calls PaV's webhook directly, as any pod of most clusters can, with requests that no API server sends.
package flood

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Review returns a request to judge a definition. It has about size bytes, and needs a multiple of that when it is
// decoded.
func Review(size int) []byte {
	const begin = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "a", "operation": "CREATE", "object": {"spec": {"a": [{}`
	const end = `]}}}}`
	return []byte(begin + strings.Repeat(`,{}`, (size-len(begin)-len(end))/3) + end)
}

// Send posts a body to the webhook, and returns the status code. If it is chunked, the request does not state its
// length.
func Send(ctx context.Context, address string, body []byte, chunked bool) (int, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	reader := io.Reader(bytes.NewReader(body))
	if chunked {
		reader = io.MultiReader(reader)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/validate-pavprovisioner", reader)
	if err != nil {
		return 0, fmt.Errorf("calling the webhook: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("calling the webhook: %w", err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Body.Close()
}
