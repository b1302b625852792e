// Package scrape reads the metrics of PaV's agents in a cluster, as Prometheus does: with a token that has the
// permission.
package scrape

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scraper is a service account that may read metrics.
type Scraper struct {
	kube    client.Client
	account *corev1.ServiceAccount
	binding *rbacv1.ClusterRoleBinding
	token   string
}

// New creates the service account, which Close deletes. The client must have all permissions.
func New(ctx context.Context, kube client.Client) (*Scraper, error) {
	const name = "test-scraper"
	s := &Scraper{
		kube:    kube,
		account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}},
		binding: &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pav-read-metrics"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
		},
	}
	for _, object := range []client.Object{s.account, s.binding} {
		if err := kube.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("making an account that may read metrics: %w", err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	if err := kube.SubResource("token").Create(ctx, s.account, request); err != nil {
		return nil, fmt.Errorf("making a token: %w", err)
	}
	s.token = request.Status.Token
	return s, nil
}

// Close deletes the service account.
func (s *Scraper) Close(ctx context.Context) error {
	for _, object := range []client.Object{s.binding, s.account} {
		if err := client.IgnoreNotFound(s.kube.Delete(ctx, object)); err != nil {
			return fmt.Errorf("removing the account that reads metrics: %w", err)
		}
	}
	return nil
}

// Metrics returns the metrics of an agent's pod. It must be called in the cluster's network.
func (s *Scraper) Metrics(ctx context.Context, agent *corev1.Pod) (string, error) {
	code, text, err := Get(ctx, Address(agent), s.token)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("metrics of %s: %d %s", agent.Name, code, text)
	}
	return text, err
}

// Address returns the address at which an agent's pod serves its metrics.
func Address(agent *corev1.Pod) string { return net.JoinHostPort(agent.Status.PodIP, "8443") }

// Get requests the metrics of the agent at an address, with a token, or without one if it is empty.
func Get(ctx context.Context, address, token string) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s for metrics: %w", address, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := web.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("asking %s for metrics: %w", address, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
