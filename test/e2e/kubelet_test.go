package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// configureKubelet restarts a kubelet with some other settings, until the test ends. The volumes of the test must be unstaged
// by then, and kubelet must have removed its directories of them, which it does after PaV's answer: a kubelet that is restarted
// in between leaves the directory of its staging path.
func configureKubelet(t *testing.T, node string, settings map[string]any) {
	t.Helper()
	path, err := onNode(t.Context(), node, "bash", "-c", `tr '\0' '\n' < /proc/$(pidof kubelet)/cmdline | sed -n 's/^--config=//p'`)
	must(t, err)
	path = strings.TrimSpace(path)
	before, err := onNode(t.Context(), node, "cat", path)
	must(t, err)
	all := map[string]any{}
	must(t, json.Unmarshal([]byte(before), &all))
	maps.Copy(all, settings)
	after, err := json.Marshal(all)
	must(t, err)
	restart := func(text string) {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		onCluster(t, "node", "kubelet", "stop", node)
		_, err := onNode(ctx, node, "bash", "-c", `printf %s "$1" > "$2"`, "-", text, path)
		onCluster(t, "node", "kubelet", "start", node)
		must(t, err)
	}
	t.Cleanup(func() {
		eventually(t, "kubelet has removed its directories of volumes", func(ctx context.Context) error {
			left, err := onNode(ctx, node, "find", "/var/lib/kubelet/plugins/kubernetes.io/csi", "-name", "vol_data.json")
			if err == nil && left != "" {
				err = fmt.Errorf("there are %s", left)
			}
			return err
		})
		restart(before)
	})
	restart(string(after))
}
