package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What "kubectl pav new" prints works as it is.
func TestKubectlNew_EachSkeletonPassesItsTest(t *testing.T) {
	t.Parallel()
	must(t, imageLoads["example-tools.tar"]())
	skeleton := func(t *testing.T, kind, name string) string {
		t.Helper()
		s := pav(t, "new", kind, name).wants(t, 0, "kind: PavProvisioner", "name: "+name)
		file := filepath.Join(t.TempDir(), name+".yaml")
		must(t, os.WriteFile(file, []byte(s.out), 0o600))
		return file
	}
	for _, kind := range []string{"dynamic", "local", "fuse", "block"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := "new-" + kind
			pav(t, "test", slowly, "--name", name, "--size", "16Mi", skeleton(t, kind, "my-"+kind)).wants(t, 0, "my-"+kind+" passed: ")
			wantNothingOf(t, name)
		})
	}
	t.Run("layer", func(t *testing.T) {
		t.Parallel()
		const name, base = "new-layer", "new-layer-base"
		bases := skeleton(t, "dynamic", base)
		_, err := kubectl(t.Context(), "", "apply", "-f", bases)
		must(t, err)
		t.Cleanup(func() {
			_, err := kubectl(context.WithoutCancel(t.Context()), "", "delete", "--ignore-not-found", "--timeout=10m", "-f", bases)
			must(t, err)
		})
		backing := filepath.Join(t.TempDir(), "backing.yaml")
		must(t, os.WriteFile(backing, []byte(strings.ReplaceAll(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: backing}
spec:
  storageClassName: BASE
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 16Mi}}
`, "BASE", base)), 0o600))
		pav(t, "test", slowly, "--name", name, "--with-objects", "--open-namespace", skeleton(t, "layer", "my-layer"), backing).wants(t, 0, "my-layer passed: ")
		wantNothingOf(t, name)
	})
}
