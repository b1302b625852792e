package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// crds is the path of all CRDs.
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// ApplyCRD creates the CRD of that name, or changes it to what the manifest says, which is YAML.
func (c *Client) ApplyCRD(ctx context.Context, name string, manifest []byte) error {
	url := c.server + crds + name + "?fieldManager=pav-cluster&force=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(manifest))
	if err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	_, err = c.do(request)
	return err
}

// Established reports whether the API server accepts objects of the CRD of that name.
func (c *Client) Established(ctx context.Context, name string) (bool, error) {
	content, err := c.get(ctx, crds+name)
	if err != nil {
		return false, err
	}
	var crd struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(content, &crd); err != nil {
		return false, fmt.Errorf("decoding the CRD %s: %w", name, err)
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == "Established" {
			return condition.Status == "True", nil
		}
	}
	return false, nil
}
