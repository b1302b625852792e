package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// What kubectl prints of a definition with mistakes names all of them, each with its field.
func TestAdmission_WrongDefinition_IsRefusedWithAllItsMistakes(t *testing.T) {
	t.Parallel()
	wrong := provisioner("wrong", "mkdir /pav/volume; echo {{ requestedMinCapacity }}", "true")
	wrong = strings.Replace(wrong, "capacity:", "capcity:", 1)
	wrong = strings.Replace(wrong, "image: busybox:1.37.0", "imag: busybox:1.37.0", 1)
	out, err := kubectl(t.Context(), wrong, "create", "-f", "-")
	if err == nil {
		t.Errorf("it is taken: %s", out)
		remove(t, &pavv1.PavProvisioner{ObjectMeta: objectMeta("", "wrong")})
		return
	}
	t.Log(err)
	for _, words := range []string{
		`The PavProvisioner "wrong" is invalid`,
		`spec.volumeCreation.capcity: `, `"capacity"`,
		`spec.volumeStaging.podTemplate.spec.containers[0].imag: `, `"image"`,
		`spec.volumeStaging.podTemplate.spec.containers[0].args[0]: line 1, column `, `requestedMinCapacity`,
	} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q", words)
		}
	}
}

// A definition that is valid but dangerous is accepted with warnings.
func TestAdmission_DangerousDefinition_IsAcceptedWithWarnings(t *testing.T) {
	t.Parallel()
	dangerous := provisioner("dangerous", "mkdir /pav/volume; echo {{ pvc.metadata.annotations.text }}", "true")
	dangerous = strings.Replace(dangerous, "podTemplate:\n      spec:", "podTemplate:\n      metadata: {namespace: e2e-not-there}\n      spec:", 1)
	out, err := kubectl(t.Context(), dangerous, "create", "--dry-run=server", "-f", "-")
	must(t, err)
	t.Log(out)
	if !strings.Contains(out, "Warning: spec.volumeStaging.podTemplate.spec.containers[0].args[0]: line 1, column ") || !strings.Contains(out, "tobash") {
		t.Error("there is no warning of the claim's text in a shell")
	}
	static := strings.Replace(dangerous, "{{ pvc.metadata.annotations.text }}", "text", 1)
	eventually(t, "there is a warning of the namespace", func(ctx context.Context) error {
		out, err := kubectl(ctx, static, "create", "--dry-run=server", "-f", "-")
		if want := "kubectl label namespace e2e-not-there pav.albertofaria.github.io/allow-pods=true"; err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("it prints %s (%w)", out, err)
		}
		return nil
	})
}

// The status counts, and kubectl get shows it.
func TestStatus_CountsVolumesStagesAndNodes(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "counted", directories)
	want := func(volumes, stages int32) func(context.Context) error {
		return func(ctx context.Context) error {
			p := &pavv1.PavProvisioner{}
			if err := kube.Get(ctx, client.ObjectKey{Name: l.name}, p); err != nil {
				return err
			}
			s := p.Status
			if s.Volumes == nil || s.Stages == nil || s.Nodes == nil || s.Nodes.Summary != "2/2" ||
				*s.Volumes != (pavv1.ProvisionerCount{Total: volumes}) || *s.Stages != (pavv1.ProvisionerCount{Total: stages}) {
				return fmt.Errorf("the status is %+v", s)
			}
			return nil
		}
	}
	eventually(t, "it is on both nodes", want(0, 0))
	claim := l.volume(t, "data", directories, corev1.ReadWriteOnce)
	l.run(t, clientPod("client", "data", ""))
	eventually(t, "the volume counts", want(1, 1))
	out, err := kubectl(t.Context(), "", "get", "pav", l.name)
	must(t, err)
	if !regexp.MustCompile(`NAME +MODES +READY +VOLUMES +NODES +DELETING +AGE\n` + l.name + ` +\["Dynamic","Static"\] +True +1 +2/2 +`).MatchString(out) {
		t.Errorf("kubectl get pav prints:\n%s", out)
	}
	l.end(t, "client")
	removeClaim(t, claim)
	eventually(t, "the volume does not count any more", want(0, 0))
}

// A definition is refused while another vendor's driver has its name.
func TestAdmission_NameOfAnothersDriver_IsRefused(t *testing.T) {
	t.Parallel()
	_, err := kubectl(t.Context(), `{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "someones"}, "spec": {}}`, "create", "-f", "-")
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "delete", "csidriver", "someones"); err != nil {
			t.Error(err)
		}
	})
	// If the webhook cannot check in time, it warns instead.
	eventually(t, "the name is refused", func(ctx context.Context) error {
		out, err := kubectl(ctx, provisioner("someones", "mkdir /pav/volume", ""), "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), `metadata.name: CSIDriver "someones" exists and is not PaV's`) {
			return fmt.Errorf("got %s (%w)", out, err)
		}
		return nil
	})
}
