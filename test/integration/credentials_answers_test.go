package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wire makes requests to an API server, and returns the whole of its answers.
type wire struct {
	http *http.Client
	host string
}

func newWire(t *testing.T, config *rest.Config) wire {
	t.Helper()
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return wire{made, strings.TrimSuffix(config.Host, "/")}
}

// request has the type of its content after the method: "PATCH application/merge-patch+json".
func (w wire) request(t *testing.T, method, path, accept, body string) (code int, answer string) {
	t.Helper()
	method, content, _ := strings.Cut(method, " ")
	request, err := http.NewRequestWithContext(t.Context(), method, w.host+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if content != "" {
		request.Header.Set("Content-Type", content)
	}
	request.Header.Set("Accept", accept)
	response, err := w.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// tells reports whether a text has the canary.
func tells(text string) bool {
	return strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary)))
}

const (
	wholeObjects  = "application/json"
	metadataOnly  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asTable       = "application/json;as=Table;g=meta.k8s.io;v=v1"
	mergePatch    = "PATCH application/merge-patch+json"
	jsonPatch     = "PATCH application/json-patch+json"
	strategic     = "PATCH application/strategic-merge-patch+json"
	applyPatch    = "PATCH application/apply-patch+yaml"
	replaceObject = "PUT application/json"
)

// text returns a Secret as the body of a request.
func text(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	s := secret.DeepCopy()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	s.UID, s.ResourceVersion, s.ManagedFields, s.CreationTimestamp = "", "", nil, metav1.Time{}
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// No answer of the API server has what a Secret has, not even one that PaV wrote: not one to a request that is refused, that makes no
// sense, or that succeeds.
func TestControllerToken_ReadsNoSecret(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	uid := uuid.NewUUID()
	ours := mustCreateHeld(t, c, secretOf("default", "unread", uid, unchanged))
	foreign := mustCreateHeld(t, c, secretOf("default", "unread-foreign", uid, func(s *corev1.Secret) { s.Labels = nil }))
	empty := func(s *corev1.Secret) *corev1.Secret {
		return secretOf("default", s.Name, uid, func(s *corev1.Secret) { s.Data = nil })
	}
	w := newWire(t, tokenFor(t, c, client.ObjectKey{Namespace: namespace, Name: "controller-agent"}))
	const all = "/api/v1/namespaces/default/secrets"
	type ask struct{ method, query, body string }
	allowed := 0
	for _, secret := range []*corev1.Secret{ours, foreign} {
		path := all + "/" + secret.Name
		body := text(t, empty(secret))
		for _, accept := range []string{wholeObjects, metadataOnly, asTable} {
			// These are not in its roles.
			for _, forbidden := range []ask{
				{"GET", path, ""}, {"GET", all, ""}, {"GET", all + "?fieldSelector=metadata.name%3D" + secret.Name, ""}, {"GET", "/api/v1/secrets", ""},
				{"GET", all + "?watch=true", ""}, {"GET", "/api/v1/watch/namespaces/default/secrets", ""}, {"DELETE", all, ""}, {"HEAD", path, ""},
				{mergePatch, path, `{}`}, {mergePatch, path, `{"data": {"a": 5}}`}, {strategic, path, `{}`},
				{jsonPatch, path, `[{"op": "test", "path": "/kind", "value": "Secret"}]`}, {jsonPatch, path, `[{"op": "copy", "from": "/data/AWS_SECRET_ACCESS_KEY", "path": "/type"}]`},
				{applyPatch, path + "?fieldManager=pav", body}, {applyPatch, path + "?fieldManager=pav&force=true&dryRun=All", body},
			} {
				if code, answer := w.request(t, forbidden.method, forbidden.query, accept, forbidden.body); code != http.StatusForbidden || tells(answer) {
					t.Errorf("%s %s %s is answered by %d: %s", forbidden.method, forbidden.query, forbidden.body, code, answer)
				}
			}
			// These are, and policies judge them.
			for _, judged := range []ask{
				{"POST application/json", all, body}, {"POST application/json", all, `{"data": {"a": 5}}`},
				{replaceObject, path + "?dryRun=All", body}, {replaceObject, path + "?dryRun=All&fieldValidation=Strict", strings.Replace(body, "{", `{"other": 1, `, 1)},
				{replaceObject, path, `{"data": {"a": 5}}`}, {replaceObject, path, strings.Replace(body, `"v1"`, `"v2"`, 1)},
				{replaceObject, path, strings.Replace(body, `"metadata":{`, `"type":"example.org/other","metadata":{`, 1)},
				{replaceObject, path, strings.Replace(body, `"metadata":{`, `"metadata":{"uid":"u",`, 1)},
				{replaceObject, path, strings.Replace(body, `"metadata":{`, `"metadata":{"resourceVersion":"1",`, 1)},
				{"DELETE", path, ""}, {"DELETE", path + "?dryRun=All", ""}, {"DELETE", path + "?propagationPolicy=Orphan", ""},
				{"DELETE application/json", path, `{"preconditions": {"uid": "u"}}`},
			} {
				code, answer := w.request(t, judged.method, judged.query, accept, judged.body)
				if tells(answer) {
					t.Errorf("%s %s %s tells a secret: %d %s", judged.method, judged.query, judged.body, code, answer)
				}
				if code < 300 {
					allowed++
				}
			}
		}
		has(t, c, secret, "AWS_SECRET_ACCESS_KEY", canary)
	}
	if allowed == 0 {
		t.Error("nothing was allowed: no answer was looked at that has an object")
	}
	// It is emptied, and then deleted. The answers have nothing of what there was.
	for _, last := range []ask{{replaceObject, "", text(t, empty(ours))}, {"DELETE", "", ""}} {
		if code, answer := w.request(t, last.method, all+"/"+ours.Name, wholeObjects, last.body); code != http.StatusOK || tells(answer) {
			t.Errorf("%s is answered by %d: %s", last.method, code, answer)
		}
	}
}
