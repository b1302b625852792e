package integration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A PavProvisioner is deleted while volumes of it are staged, as its finalizer was removed. Pods keep and release their
// volumes as before, also after a restart of the agent; the volumes are unstaged when the PavProvisioner exists again.
func TestNode_ProvisionerRemovedByForce(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)))
	first := n.Launch(t, n.agentConfig, 0)
	v := n.volume(t, "served")
	n.stage(t, v)
	n.publish(t, v, clientOf(v, 1))
	provisioner := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: n.provisioner}}
	if err := n.c.Admin.Get(t.Context(), client.ObjectKeyFromObject(provisioner), provisioner); err != nil {
		t.Fatal(err)
	}
	mustDelete(t, n.c, provisioner)
	gone(t, n.c, provisioner)
	stage := n.stages(t)[0]
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	exists(t, n.c, claim, "is there", func(*corev1.PersistentVolumeClaim) bool { return true })
	for _, object := range []client.Object{&stage, claim} {
		n.wantEvent(t, object, "ProvisionerMissing", "create the PavProvisioner again")
	}
	n.publish(t, v, clientOf(v, 2))
	n.unpublish(t, v, clientOf(v, 1))
	first.Stop(t)

	n.run(t)
	n.publish(t, v, clientOf(v, 3))
	n.wantRead(t, v, clientOf(v, 2))
	n.unpublish(t, v, clientOf(v, 2))
	n.unpublish(t, v, clientOf(v, 3))
	again := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: n.provisioner}, Spec: provisioner.Spec}
	mustCreate(t, n.c, again)
	accept(t, n.c, again)
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// A PavProvisioner that is being deleted serves its volumes, and kubectl get shows what it waits for.
func TestNode_ProvisionerToBeDeleted_ServesItsVolumes(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)))
	n.run(t)
	v := n.volume(t, "served")
	provisioner := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: n.provisioner}}
	exists(t, n.c, provisioner, "is there", func(*pavv1.PavProvisioner) bool { return true })
	mustPatch(t, n.c, provisioner, func(p *pavv1.PavProvisioner) { controllerutil.AddFinalizer(p, pavv1.ProvisionerFinalizer) })
	t.Cleanup(func() {
		before := provisioner.DeepCopy()
		controllerutil.RemoveFinalizer(provisioner, pavv1.ProvisionerFinalizer)
		if err := n.c.Admin.Patch(lasting(t), provisioner, client.MergeFrom(before)); err != nil {
			t.Error(err)
		}
	})
	mustDelete(t, n.c, provisioner)
	const waits = "waiting for 1 PavVolume(s)"
	exists(t, n.c, provisioner, "is to be deleted", func(p *pavv1.PavProvisioner) bool { return p.DeletionTimestamp != nil })
	provisioner.Status.Conditions = append(provisioner.Status.Conditions, metav1.Condition{
		Type: pavv1.ProvisionerDeleting, Status: metav1.ConditionTrue, Reason: "InUse", Message: waits, LastTransitionTime: metav1.Now(),
	})
	if err := n.c.Admin.Status().Update(t.Context(), provisioner); err != nil {
		t.Fatal(err)
	}
	if shown := printed(t, n.c, "pavprovisioners", n.provisioner)["Deleting"]; shown != waits {
		t.Errorf("kubectl get shows %q", shown)
	}

	n.stage(t, v)
	n.publish(t, v, clientOf(v, 1))
	n.wantRead(t, v, clientOf(v, 1))
	n.unpublish(t, v, clientOf(v, 1))
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

// printed returns the columns that kubectl get shows of an object.
func printed(t *testing.T, c *cluster, resource, name string) map[string]any {
	t.Helper()
	admin, err := rest.HTTPClientFor(c.Environment.Config)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := rest.DefaultServerUrlFor(c.Environment.Config)
	if err != nil {
		t.Fatal(err)
	}
	url := server.JoinPath("apis", pavv1.GroupVersion.String(), resource, name)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := admin.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(raw, table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("%v: %s", err, raw)
	}
	columns := map[string]any{}
	for i := range table.ColumnDefinitions {
		columns[table.ColumnDefinitions[i].Name] = table.Rows[0].Cells[i]
	}
	return columns
}

// The API server is unavailable when the agent starts. The agent serves staged volumes, and continues when the API server
// is back.
func TestNode_AgentStartsWithoutAPIServer(t *testing.T) {
	for name, silent := range map[string]bool{"refuses connections": false, "is silent": true} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)))
			line, config := newRelay(t, n.agentConfig)
			n.agentConfig = config
			first := n.Launch(t, n.agentConfig, 0)
			v, other := n.volume(t, "served"), n.volume(t, "made")
			n.stage(t, v)
			n.publish(t, v, clientOf(v, 1))
			first.Stop(t)

			line.set(!silent, silent)
			second := n.run(t)
			n.publish(t, v, clientOf(v, 2))
			n.wantRead(t, v, clientOf(v, 1))
			n.wantRead(t, v, clientOf(v, 2))
			n.unpublish(t, v, clientOf(v, 1))
			n.unpublish(t, v, clientOf(v, 2))
			n.wantNotFinal(t, "unstaging", func(ctx context.Context) error { return n.Unstage(ctx, v) })
			select {
			case <-second.Ended():
				t.Error("the agent has ended")
			default:
			}

			line.set(false, false)
			n.unstage(t, v)
			n.stage(t, other)
			n.unstage(t, other)
		})
	}
}
