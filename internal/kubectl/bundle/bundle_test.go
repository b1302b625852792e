package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// contents writes a bundle, and returns the files in it.
func contents(t *testing.T, b *Bundle) map[string]string {
	t.Helper()
	var file bytes.Buffer
	if err := b.Write(t.Context(), &file, noon); err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(noon) || header.Mode != 0o600 {
			t.Errorf("%s has the time %v and mode %o", header.Name, header.ModTime, header.Mode)
		}
		files[header.Name] = string(text)
	}
}

// object decodes an object of the test from YAML.
func object(t *testing.T, text string) client.Object {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

func logOf(name, text string) Log {
	return Log{Name: name, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

// canary begins all secrets of the tests.
const canary = "hunter2-"

// podSpec has a secret in each field of a pod that may have one.
const podSpec = `
      serviceAccountName: mounter
      hostname: hunter2-hostname
      hostAliases: [{ip: 10.0.0.1, hostnames: [hunter2-alias]}]
      nodeSelector: {pool: fast}
      tolerations: [{key: dedicated, operator: Equal, value: hunter2-toleration, effect: NoSchedule}]
      securityContext: {sysctls: [{name: kernel.x, value: hunter2-sysctl}]}
      initContainers:
        - name: node-agent # like PaV's own
          image: busybox:1.37.0
          command: [sh, -ec, "mount -o password=hunter2-command", 20452045]
          args: [hunter2-impostor]
      containers:
        - name: main
          image: registry.example/tools:1
          args: ["--token=hunter2-argument", 20452045]
          workingDir: /hunter2-directory
          env:
            - {name: PASSWORD, value: hunter2-environment}
            - {name: NUMBER, value: 20452045}
            - {name: FROM, valueFrom: {secretKeyRef: {name: credentials, key: token}}}
          envFrom: [{prefix: hunter2-prefix, secretRef: {name: all}}]
          lifecycle: {postStart: {exec: {command: [hunter2-lifecycle]}}, preStop: {httpGet: {path: '/?token=hunter2-path', httpHeaders: [{name: X, value: hunter2-header}]}}}
          livenessProbe: {exec: {command: [hunter2-probe]}, periodSeconds: 7}
          volumeMounts: [{name: share, mountPath: /mnt, subPathExpr: hunter2-expression}]
          securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}
          resources: {limits: {memory: 64Mi}}
          futureField: {nested: [hunter2-future]}
      volumes:
        - {name: share, nfs: {server: hunter2-server, path: /export}}
        - {name: inline, csi: {driver: other.example, volumeAttributes: {password: hunter2-attribute}}}
        - {name: flex, flexVolume: {driver: x/y, options: {password: hunter2-option, pin: 20452045}}}
        - {name: ceph, cephfs: {user: hunter2-user, monitors: [hunter2-monitor]}}
        - {name: secret, secret: {secretName: credentials}}
        - {name: host, hostPath: {path: /dev/fuse}}`

// indented returns podSpec with so many more spaces at the beginning of each line.
func indented(by int) string {
	return strings.ReplaceAll(podSpec, "\n      ", "\n"+strings.Repeat(" ", 6+by))
}

// kept are texts of podSpec that a bundle has.
var kept = []string{"name: PASSWORD", "name: FROM", "name: credentials", "key: token", "name: all", "image: busybox:1.37.0", "image: registry.example/tools:1", "serviceAccountName: mounter",
	"pool: fast", "key: dedicated", "mountPath: /mnt", "privileged: true", "- SYS_ADMIN", "memory: 64Mi", "periodSeconds: 7", "driver: other.example", "secretName: credentials", "path: /dev/fuse"}

var definition = `
metadata:
  name: demo
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"spec": "hunter2-applied"}'
    note: hunter2-annotation
  managedFields: [{manager: hunter2-manager}]
spec:
  provisioningModes: [Dynamic, Static]
  unknownField: hunter2-unknown
  volumeValidation:
    accessModes: [ReadWriteOnce]
    podTemplate: |
      {% set yaml = true %}
      {spec: {containers: [{name: main, env: [{name: A, value: hunter2-yaml}]}]}}
  volumeCreation:
    handle: "{{ params.pool }}/{{ pvc.metadata.name }}"
    podTemplate:
      metadata: {labels: {app: demo}, annotations: {vault: hunter2-vault}}
      spec:` + indented(2) + `
  volumeStaging:
    podTemplate:
      spec:
        containers: "{{ 'hunter2-expression' }}"
status:
  conditions: [{type: Ready, status: "False", message: "the backend refuses hunter2-parameter of demo"}]
`

var volume = `
metadata: {name: pvc-u1}
spec:
  provisioner: demo
  claimRef: {namespace: apps, name: data, uid: u1}
  claim: {metadata: {name: data, annotations: {password: hunter2-claim}, managedFields: [{manager: hunter2-manager}]}, spec: {storageClassName: fast}}
  storageClass: {provisioner: demo, parameters: {password: hunter2-parameter, pool: tank-of-volumes, quoted: 'hunter2-"quoted"'}, mountOptions: ["password=hunter2-mount"]}
status:
  phase: Pending
  handle: tank-of-volumes
  definition:
    volumeCreation:
      podTemplate:
        spec:` + indented(4) + `
  provisionedClaim: {metadata: {annotations: {password: hunter2-former}}}
  failure: {reason: PodFailed, message: 'mount: bad option hunter2-mount for tank-of-volumes', log: hunter2-log}
`

const stage = `
metadata: {name: stage-1, annotations: {pav.albertofaria.github.io/admitted: '{"objects": "hunter2-admitted"}', pav.albertofaria.github.io/retry: "2026-03-01T12:00:00Z"}}
spec:
  nodeName: n1
  volume: {spec: {csi: {driver: demo, volumeHandle: h, volumeAttributes: {password: hunter2-context}, nodePublishSecretRef: {name: credentials}}, mountOptions: [hunter2-options]}}
status: {phase: Staged}
`

var workflowPod = `
metadata:
  name: create-1
  namespace: pav-pods
  annotations: {pav.albertofaria.github.io/volume: pvc-u1, pav.albertofaria.github.io/result: '{"error": "hunter2-result"}'}
spec:
  nodeName: n1` + indented(-4) + `
status:
  phase: Failed
  containerStatuses:
    - {name: main, state: {terminated: {exitCode: 5, reason: Error, message: hunter2-termination}}, lastState: {terminated: {message: hunter2-before}}}
    - {name: second, state: {waiting: {reason: RunContainerError, message: 'exec: "mount -o password=hunter2-command": not found'}}}
`

const daemonSet = `
metadata: {name: node-agent, namespace: pav}
spec:
  template:
    metadata: {annotations: {a: hunter2-template}}
    spec:
      containers:
        - {name: node-agent, image: "pav:0.2.0", args: [node, --verbosity=1], env: [{name: HTTPS_PROXY, value: "http://user:hunter2-proxy@proxy"}]}
        - {name: sidecar, args: [--token=hunter2-sidecar]}
`

const event = `
metadata: {name: e1, namespace: pav-pods}
involvedObject: {kind: Pod, name: create-1}
reason: Failed
message: "cannot mount with hunter2-parameter and hunter2-mount on n1"
`

// full is a bundle with secrets in each place that may have them.
func full(t *testing.T) *Bundle {
	t.Helper()
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	return &Bundle{
		Objects: []Objects{
			{Name: "events", Kind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, Items: []client.Object{object(t, event)}},
			{Name: "pavprovisioners", Kind: pavv1.GroupVersion.WithKind("PavProvisioner"), Items: []client.Object{object(t, definition)}},
			{Name: "pavvolumes", Kind: pavv1.GroupVersion.WithKind("PavVolume"), Items: []client.Object{object(t, volume)}},
			{Name: "pavstages", Kind: pavv1.GroupVersion.WithKind("PavStage"), Items: []client.Object{object(t, stage)}},
			{Name: "workflow-pods", Kind: pod, Items: []client.Object{object(t, workflowPod)}},
			{Name: "agents", Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Items: []client.Object{object(t, daemonSet)}, Agents: true},
		},
		Results: map[string]any{"doctor": map[string]any{"rows": []any{map[string]any{"message": "demo: hunter2-parameter", "note": []any{"x"}}}}},
		Logs:    []Log{logOf("node-agent-1/node-agent", `{"error": "hunter2-context and hunter2-\"quoted\"", "volume": "tank-of-volumes"}`+"\n")},
		Missing: []string{"cannot list nodes: hunter2-parameter"},
	}
}

func TestWrite_HasNoSecret(t *testing.T) {
	files := contents(t, full(t))
	for name, text := range files {
		for line := range strings.Lines(text) {
			if strings.Contains(line, canary) || strings.Contains(line, "20452045") {
				t.Errorf("%s has a secret: %s", name, line)
			}
		}
	}
	if len(files) != 9 {
		t.Errorf("there are %d files", len(files))
	}
}

func TestWrite_KeepsWhatExplains(t *testing.T) {
	files := contents(t, full(t))
	for name, words := range map[string][]string{
		"pavprovisioners.yaml": append([]string{"kind: PavProvisioner", "name: demo", "- Dynamic", "- ReadWriteOnce", "handle: '{{ params.pool }}/{{ pvc.metadata.name }}'", "app: demo",
			"message: the backend refuses (removed) of demo", "podTemplate: (removed)", "containers: (removed)", "unknownField: (removed)", "vault: (removed)"}, kept...),
		"pavvolumes.yaml": append([]string{"kind: PavVolume", "uid: u1", "storageClassName: fast", "pool: (removed)", "handle: tank-of-volumes", "password: (removed)",
			"message: 'mount: bad option (removed) for tank-of-volumes'", "log: (removed)", "reason: PodFailed"}, kept...),
		"pavstages.yaml":                   {"volumeHandle: h", "name: credentials", "nodeName: n1", `pav.albertofaria.github.io/retry: "2026-03-01T12:00:00Z"`, "pav.albertofaria.github.io/admitted: (removed)"},
		"workflow-pods.yaml":               append([]string{"nodeName: n1", "exitCode: 5", "reason: Error", "message: (removed)", "pav.albertofaria.github.io/volume: pvc-u1"}, kept...),
		"agents.yaml":                      {"- --verbosity=1", "name: HTTPS_PROXY", "value: (removed)"},
		"events.yaml":                      {"message: cannot mount with (removed) and (removed) on n1", "name: create-1"},
		"doctor.yaml":                      {"message: 'demo: (removed)'"},
		"logs/node-agent-1/node-agent.log": {`{"error": "(removed) and (removed)", "volume": "tank-of-volumes"}`},
		"not-read.txt":                     {"cannot list nodes: (removed)"},
	} {
		text, is := files[directory+name]
		if !is {
			t.Errorf("there is no %s", name)
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s lacks %q:\n%s", name, word, text)
			}
		}
	}
}

// The documentation says which texts of definitions and pods are left.
func TestKeptFields_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/kubectl-pav.md")
	if err != nil {
		t.Fatal(err)
	}
	_, left, _ := strings.Cut(string(page), "in pods and definitions, numbers, booleans, and the texts and templates in these fields:")
	left, _, _ = strings.Cut(left, ";\n- ")
	got := map[string]bool{}
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(left, -1) {
		got[match[1]] = true
	}
	want := maps.Clone(known)
	maps.Copy(want, trees)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-kept +documented):\n%s", diff)
	}
}

// A log that cannot be read leaves the others.
func TestWrite_WhereALogCannotBeRead_SaysSo(t *testing.T) {
	gone := Log{Name: "a/b", Open: func(context.Context) (io.ReadCloser, error) { return nil, errors.New("the pod is gone") }}
	got := contents(t, &Bundle{Logs: []Log{gone, logOf("c/d", "line\n")}})
	want := map[string]string{"pav-bundle/logs/c/d.log": "line\n", "pav-bundle/not-read.txt": "log of a/b: the pod is gone\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrite_TypedObjects_HaveTheirKind(t *testing.T) {
	node := &corev1.Node{}
	node.Name = "n1"
	got := contents(t, &Bundle{Objects: []Objects{{Name: "nodes", Kind: corev1.SchemeGroupVersion.WithKind("Node"), Items: []client.Object{node}}}})
	if text := got["pav-bundle/nodes.yaml"]; !strings.Contains(text, "apiVersion: v1\nkind: Node\nmetadata:\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestTail(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":                   {"", ""},
		"short":                   {"a\nb\n", "a\nb\n"},
		"exactly as long":         {"1234\n6789\n", "1234\n6789\n"},
		"longer: whole lines":     {"first\nsecond\nthird\n", "third\n"},
		"much longer":             {strings.Repeat("x\n", 1000) + "last\n", "x\nx\nlast\n"},
		"a line longer than that": {strings.Repeat("0123456789", 3), "0123456789"},
		"without a line feed":     {"0123456789\nabc", "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tail(strings.NewReader(test.text), 10)
			if err != nil || string(got) != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
	if _, err := tail(io.MultiReader(strings.NewReader("abc"), broken{}), 10); !errors.Is(err, errBroken) {
		t.Errorf("a stream that breaks: %v", err)
	}
}

var errBroken = fmt.Errorf("the stream broke")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }
