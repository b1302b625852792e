package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/albertofaria/pav/test/cluster/internal/namespace"
	"github.com/albertofaria/pav/test/cluster/internal/pki"
)

// answerLimit is the maximum size of an answer. A list of nodes is much smaller.
const answerLimit = 8 << 20

// Client talks to an API server through the network namespace of a process.
type Client struct {
	server string
	http   *http.Client
}

// New returns a client with the administrator's certificate. server is a URL with a numeric address. pid is a process
// whose network namespace can reach that address.
func New(directory, server string, pid int) (*Client, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(directory, pki.Admin+".crt"), filepath.Join(directory, pki.Admin+".key"))
	if err != nil {
		return nil, fmt.Errorf("loading the administrator's certificate: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(directory, pki.AuthorityFile))
	if err != nil {
		return nil, fmt.Errorf("loading the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("loading the authority's certificate: no certificate found")
	}
	return &Client{server: server, http: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return namespace.Dial(ctx, pid, network, address)
			},
		},
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ready returns nil if the server reports that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.get(ctx, "/readyz")
	return err
}

// HasServiceAccount returns nil if the default service account of the namespace default exists. Pods of that namespace
// use it.
func (c *Client) HasServiceAccount(ctx context.Context) error {
	_, err := c.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

// Node has the properties of a node that this program uses.
type Node struct {
	Name string
	// Ready is true if the node has the condition Ready and has no taint of Kubernetes that keeps pods away.
	Ready  bool
	BootID string
}

// Nodes returns the nodes by name.
func (c *Client) Nodes(ctx context.Context) (map[string]Node, error) {
	content, err := c.get(ctx, "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	return parseNodes(content)
}

func parseNodes(content []byte) (map[string]Node, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Taints []struct{ Key string } }
			Status   struct {
				NodeInfo   struct{ BootID string }
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("decoding the list of nodes: %w", err)
	}
	nodes := map[string]Node{}
	for _, item := range list.Items {
		node := Node{Name: item.Metadata.Name, BootID: item.Status.NodeInfo.BootID}
		for _, condition := range item.Status.Conditions {
			node.Ready = node.Ready || condition.Type == "Ready" && condition.Status == "True"
		}
		// Kubernetes removes the taints of new and of unreachable nodes a little after a node is ready.
		for _, taint := range item.Spec.Taints {
			node.Ready = node.Ready && !strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		}
		nodes[node.Name] = node
	}
	return nodes, nil
}

func (c *Client) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	return c.do(request)
}

// do sends a request and returns the content of the answer. If the API server refuses the request, the error is a
// RefusedError.
func (c *Client) do(request *http.Request) ([]byte, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("reading the API server's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return nil, &RefusedError{Path: request.URL.Path, Status: response.Status, Message: messageOf(content)}
	}
	return content, nil
}

// RefusedError is an answer of the API server that is not a success.
type RefusedError struct {
	Path, Status string
	// Message is the API server's own, or empty.
	Message string
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("the API server answers %s with %s", e.Path, e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// messageOf returns the message in an answer, or an empty string if the answer is no status of Kubernetes.
func messageOf(content []byte) string {
	var status struct{ Message string }
	if err := json.Unmarshal(content, &status); err != nil {
		return ""
	}
	return status.Message
}
