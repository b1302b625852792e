package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// With scope Pod, each client has a staging pod of its own, whose template sees how the client may use the volume.
func TestScopePod_EachClientHasItsStagingPod(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, fuse} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "scope-"+m.name, m, with("staging", "scope: Pod"),
				replacing("hook stage", "echo \"told: $read_only\" >> /storage/told; hook stage"))
			claim := l.volume(t, "data", m, corev1.ReadWriteMany)
			l.run(t, clientPod("writer", "data", "node1"), edited(clientPod("reader", "data", "node1"), reader))
			pods, err := stagingPods(t.Context(), l.name)
			must(t, err)
			if len(pods) != 2 {
				t.Errorf("there are %d staging pods, want one a client", len(pods))
			}
			l.sh(t, "writer", "echo hello > /data/file")
			if got := l.sh(t, "reader", "cat /data/file"); got != "hello\n" {
				t.Errorf("the reader reads %q", got)
			}
			l.fails(t, "reader", "touch /data/other", "Read-only file system")
			if got, err := readFile(l.directory, "told"); err != nil || !strings.Contains(got, "told: \n") || !strings.Contains(got, "told: --read-only\n") {
				t.Errorf("the staging pods had %q (%v), want that one client but reads", got, err)
			}
			l.wantClients(t, "writer", "reader")

			// Each staging pod is deleted with its client.
			l.end(t, "writer")
			l.awaitEffects(t, claim, "stage", "stage", "unstage")
			if got := l.sh(t, "reader", "cat /data/file"); got != "hello\n" {
				t.Errorf("after the other client has ended, the reader reads %q", got)
			}
			l.wantClients(t, "reader")
			l.run(t, clientPod("third", "data", "node2"))
			l.end(t, "reader", "third")
			l.awaitEffects(t, claim, "stage", "stage", "unstage", "stage", "unstage", "unstage")
			l.awaitNoStage(t)
		})
	}
}

// wantClients waits until these pods are the clients that have stages.
func (l *ledger) wantClients(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q have stages of their own", want), func(ctx context.Context) error {
		stages, err := l.stages(ctx)
		if err != nil {
			return err
		}
		has := map[string]bool{}
		for i := range stages {
			s := &stages[i]
			if s.Spec.Scope != pavv1.StagingScopePod {
				return fmt.Errorf("PavStage %s has the scope %s", s.Name, s.Spec.Scope)
			}
			if s.Spec.Client != nil {
				has[s.Spec.Client.Name] = true
			}
		}
		for _, name := range want {
			if !has[name] {
				return fmt.Errorf("pod %s has none", name)
			}
		}
		if len(has) != len(want) {
			return fmt.Errorf("there are those of %v", has)
		}
		return nil
	})
}

// The scope does not change while there are PavStages.
func TestScope_StaysWhileThereAreStages(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "scope-changes", directories)
	l.volume(t, "data", directories, corev1.ReadWriteMany)
	l.run(t, clientPod("first", "data", "node1"))
	_, err := kubectl(t.Context(), "", "patch", "pavprovisioner", l.name, "--type=merge", "-p", `{"spec":{"volumeStaging":{"scope":"Pod"}}}`)
	must(t, err)
	inForce := func(want pavv1.StagingScope) func(context.Context) error {
		return func(ctx context.Context) error {
			provisioner := &pavv1.PavProvisioner{ObjectMeta: objectMeta("", l.name)}
			if err := kube.Get(ctx, keyOf(provisioner), provisioner); err != nil {
				return err
			}
			if provisioner.Status.ObservedGeneration != provisioner.Generation || provisioner.Scope() != want {
				return fmt.Errorf("its status is %+v", provisioner.Status)
			}
			return nil
		}
	}
	eventually(t, "the old scope stays in force", inForce(pavv1.StagingScopeNode))
	l.run(t, clientPod("second", "data", "node1"))
	pods, err := stagingPods(t.Context(), l.name)
	must(t, err)
	if len(pods) != 1 {
		t.Errorf("there are %d staging pods, want one of the scope that is in force", len(pods))
	}
	l.end(t, "first", "second")
	eventually(t, "the new scope is in force", inForce(pavv1.StagingScopePod))
	l.run(t, clientPod("third", "data", "node1"), clientPod("fourth", "data", "node1"))
	l.wantClients(t, "third", "fourth")
}
