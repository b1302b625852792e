package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Buckets of a real S3 server are created, used from two nodes, and deleted with their content. Wrong credentials are
// reported on the claim, and provisioning continues when they are corrected.
func TestExample_ObjectStore(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { remove(t, &corev1.Secret{ObjectMeta: objectMeta("pav-pods", "object-store")}) })
	e := newExample(t, "2-object-store", exampleNamespace(t, "object-store"), "example-tools.tar", "versitygw.tar")
	e.follow(t, "Start the server")
	prints(t, e.follow(t, "Make a volume and use it"), "Hello, bucket!")
	wantClaimEvent(t, e.claim(t, "object-store"), "ProvisioningSucceeded")
	prints(t, e.follow(t, "If the credentials are wrong"), "ProvisioningSucceeded")
	bucket := e.claim(t, "object-store").Spec.VolumeName
	e.run(t, s3Client(e.server(t)), clientPod("first", "object-store", "node1"), clientPod("second", "object-store", "node2"))
	e.sh(t, "first", "echo from the first > /data/first; mkdir -p /data/some/where; cp /data/first /data/some/where")
	if got := e.sh(t, "second", "cat /data/first /data/some/where/first"); got != "from the first\nfrom the first\n" {
		t.Errorf("on the other node, a pod reads %q", got)
	}
	if got := e.sh(t, "s3-client", "s3cmd $S3CMD get s3://"+bucket+"/first - 2> /dev/null"); !strings.Contains(got, "from the first") {
		t.Errorf("the server has %q", got)
	}

	setSecret(t, "pav-pods", "object-store", "AWS_SECRET_ACCESS_KEY", "wrong")
	e.create(t, claim("refused", "object-store", "ReadWriteMany"))
	refused := e.claim(t, "refused")
	wantClaimEvent(t, refused, "ProvisioningFailed", "object-store", "SignatureDoesNotMatch")
	setSecret(t, "pav-pods", "object-store", "AWS_SECRET_ACCESS_KEY", "open-sesame")
	awaitBound(t, refused)
	remove(t, refused)
	e.end(t, "first", "second")

	e.follow(t, "Clean up")
	eventually(t, "no bucket is left", func(ctx context.Context) error {
		if left, err := inPod(ctx, e.namespace, "s3-client", "s3cmd $S3CMD ls"); err != nil || strings.Contains(left, "pvc-") {
			return fmt.Errorf("the server has %q (%w)", left, err)
		}
		return nil
	})
	e.follow(t, "What is left is the server")
}

// server returns the address and port of the S3 server.
func (e *example) server(t *testing.T) string {
	t.Helper()
	address, err := kubectl(t.Context(), "", "-n", e.namespace, "get", "service", "s3", "-o", "jsonpath={.spec.clusterIP}")
	must(t, err)
	return address + ":7070"
}

// s3Client returns a pod with s3cmd, and in S3CMD its options for a server.
func s3Client(server string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: s3-client
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: %[1]s
      command: [sleep, infinity]
      env:
        - {name: AWS_ACCESS_KEY_ID, value: example}
        - {name: AWS_SECRET_ACCESS_KEY, value: open-sesame}
        - {name: S3CMD, value: "--no-ssl --host=%[2]s --host-bucket=%[2]s"}
`, exampleTools, server)
}
