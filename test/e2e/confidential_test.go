package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// confidential edits a ledger's definition and class so that secrets are everywhere they can be: in the class, in the
// definition, in a Secret, and in the results of templates. Pods print them when they fail.
func confidential(text string) string {
	for _, change := range []edit{
		with("class", "mountOptions: [password="+canary+"-mount]\nparameters: {password: "+canary+"-class}"),
		with("create container", "envFrom: [{secretRef: {name: confidential}}]"),
		with("stage container", "envFrom: [{secretRef: {name: confidential}}]"),
		replacing("hook create", "literal="+canary+"-literal class={{ params.password }}\nhook create"),
		replacing("hook stage", "options={{ mountOptions | join(',') | tobash }} class={{ params.password }}\nhook stage"),
	} {
		text = change(text)
	}
	return strings.ReplaceAll(text, "\nhook ", "\n"+strings.Repeat(" ", 16)+"hook ")
}

const confidentialFails = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: confidential-fails
spec:
  provisioningModes: [Dynamic]
  volumeCreation:
    handle: "{{ params.password / 2 }}"
    capacity: "{{ requestedMinCapacity }}"
  volumeStaging:
    podTemplate:`

// Confidential values go through all workflows here, also through those that fail. After the last test, logs, events and
// objects are searched for them.
func TestSecrets_AreNotExposed(t *testing.T) {
	t.Parallel()
	newSecret(t, "confidential")
	l := newLedger(t, "confidential", confidential)
	l.hook(t, "create", `echo "$key $literal $class"; echo "$class" >&2; exit 3`)
	l.hook(t, "stage", `echo "$key $options $class"; exit 4`)
	annotated := strings.Replace(claim("data", l.name, "ReadWriteMany"), "  name: data\n", "  name: data\n  annotations: {password: "+canary+"-claim}\n", 1)
	_, err := kubectl(t.Context(), annotated, "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	made := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "data"}, made))
	wantClaimEvent(t, made, "ProvisioningFailed", l.name, "exit code 3")
	kept.expect(inEvents, `"`+l.name+`"`)
	awaitVolume(t, made, "its record has the pod's last words", func(v *pavv1.PavVolume) bool {
		return v.Status.Failure != nil && strings.Contains(fmt.Sprint(*v.Status.Failure), canary)
	})
	l.unhook(t, "create")
	awaitBound(t, made)
	kept.expect(inLogs, volumeName(made))

	failing := edited(storageClass("confidential-fails"), func(text string) string { return text + "parameters: {password: " + canary + "-class}\n" })
	apply(t, l.namespace, documents(confidentialFails+container("true"), failing))
	static := provisioner("confidential-static", "mkdir /pav/volume; password={{ params.password | tobash }}", "")
	apply(t, l.namespace, documents(static, strings.ReplaceAll(staticVolume("confidential-static", "confidential-static", l.namespace, "password: "+canary+"-context"), "name: data", "name: static")))
	apply(t, l.namespace, claim("fails", "confidential-fails", "ReadWriteMany"))
	eventually(t, "the claim has an event that its template fails", func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, "fails", "ProvisioningFailed", "confidential-fails")
	})

	apply(t, l.namespace, documents(clientPod("client", "data", "node1"), clientPod("of-static", "static", "node1")))
	eventually(t, "the client has an event that its volume is not staged", func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, "client", "FailedMount", "exit code 4")
	})
	kept.expect(inMetrics, `provisioner="`+l.name+`"`)
	eventually(t, "the metrics of all agents are read", func(ctx context.Context) error { // 503 while the API server is slow
		_, err := scrapeAll(ctx)
		return err
	})
	l.unhook(t, "stage")
	l.awaitRunning(t, "client")
	l.awaitRunning(t, "of-static")
	kept.expect(inMounts, volumeName(made))
	must(t, kept.lookAtMounts(t.Context(), "node1"))
	l.end(t, "client", "of-static")
	removeClaim(t, made)
}
