package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// plugin is "kubectl pav" as a user.
type plugin struct{ kubeconfig string }

// pluginOf returns the plugin as a user with the name, who has the rights.
func pluginOf(t *testing.T, c *cluster, name string, rules ...rbacv1.PolicyRule) plugin {
	t.Helper()
	user, err := c.Environment.AddUser(envtest.User{Name: name}, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: name}
	role := mustCreate(t, c, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	binding := mustCreate(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	t.Cleanup(func() { _, _ = c.Admin.Delete(lasting(t), binding), c.Admin.Delete(lasting(t), role) })
	return plugin{file}
}

// may is a right on a resource of the core or of PaV.
func may(verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"", pavv1.Group}, Resources: resources, Verbs: []string{verb}}
}

// run runs a command, and returns what it prints and its exit status.
func (p plugin) run(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, problems bytes.Buffer
	root := kubectl.Root(&cli.Env{ //nolint:contextcheck // only the completion of names has a context of its own
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems},
		Config:    genericclioptions.NewConfigFlags(true),
	})
	root.SetArgs(append(args, "--kubeconfig", p.kubeconfig))
	err := root.ExecuteContext(ctx)
	if exit, ok := errors.AsType[*cli.ExitError](err); ok {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		fmt.Fprintln(&problems, err)
	}
	return out.String(), problems.String(), code
}

// edit writes a definition of the cluster to a file, after replacements of its text.
func edit(t *testing.T, p *pavv1.PavProvisioner, replacements ...string) string {
	t.Helper()
	plain := map[string]any{
		"apiVersion": pavv1.GroupVersion.String(), "kind": "PavProvisioner", "metadata": map[string]any{"name": p.Name}, "spec": p.Spec,
	}
	text, err := json.MarshalIndent(plain, "", "  ") // which is YAML, too
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer(replacements...).Replace(string(text))
	if len(replacements) > 0 && edited == string(text) {
		t.Fatalf("%q replaces nothing in:\n%s", replacements, text)
	}
	file := filepath.Join(t.TempDir(), "provisioner.yaml")
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func wantTexts(t *testing.T, in string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(in, text) {
			t.Errorf("%q is not in:\n%s", text, in)
		}
	}
}

// stagedOn writes the PavStage of a volume, with its copies, as a node agent does.
func stagedOn(t *testing.T, c *cluster, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, node string) {
	t.Helper()
	stage := stageOf(pv, podplan.StageName(pv, node), node)
	stage.Finalizers = nil
	stage.Spec = podplan.StageSpec(pv, claim, node)
	stage.Spec.Volume, stage.Spec.Claim = rawOf(t, pv), rawOf(t, claim)
	mustCreate(t, c, stage)
	t.Cleanup(func() { mustDeleteLasting(t, c, stage) })
}

func rawOf(t *testing.T, object client.Object) pavv1.Template {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return pavv1.Template{Raw: raw}
}

// renderableDriver is a driver whose pods show with which objects they are rendered. When the test ends, it has no
// deletion pod, for which there is no kubelet.
func renderableDriver(t *testing.T, c *cluster, name string) *pavv1.PavProvisioner {
	t.Helper()
	definition := driver(t, c, name, renderable)
	t.Cleanup(func() {
		now := definition.DeepCopy()
		now.Spec.VolumeDeletion = nil
		if err := c.Admin.Patch(lasting(t), now, client.MergeFrom(definition)); err != nil {
			t.Error(err)
		}
	})
	return definition
}

func renderable(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
	withDeletionPod(p, s)
	inPool(p, s)
	p.Spec.ProvisioningModes = append(p.Spec.ProvisioningModes, pavv1.ProvisioningModeStatic)
	p.Spec.VolumeStaging.PodTemplate = *field(`{"spec": {"containers": [{
		"name": "stage", "image": "busybox:1.37.0", "args": ["{{ node.metadata.name }} {{ node.metadata.labels.rack }}"]
	}]}}`)
}

func TestRenderVolumes(t *testing.T) {
	c := start(t)
	run(t, c)
	const name = "edited"
	definition := renderableDriver(t, c, name)
	node := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "render-node", Labels: map[string]string{"rack": "r7"}}})
	t.Cleanup(func() { mustDeleteLasting(t, c, node) })
	var claims []*corev1.PersistentVolumeClaim
	for i, owner := range []string{"alice", "alice", "bob"} {
		claim := ownedClaim(name, owner)
		claim.Name = fmt.Sprintf("render-%d", i)
		claims = append(claims, mustCreate(t, c, claim))
	}
	pv, _ := bound(t, c, claims[0])
	bound(t, c, claims[1])
	last, record := bound(t, c, claims[2])
	stagedOn(t, c, pv, claims[0], node.Name)
	fixed := staticVolume(t, c, name)
	admin := pluginOf(t, c, "administrator", may("get", "*"), may("list", "*"))

	unedited := edit(t, definition)
	eventually(t, "the administrator has the rights, and sees that nothing changes", func(ctx context.Context) (bool, string) {
		stdout, stderr, code := admin.run(ctx, "render", unedited, "--diff", "--volumes")
		return code == 0 && stdout == "0 of 4 volumes: nothing changes\n", stdout + stderr
	})

	// The edit changes a pod of the volumes of one owner, and fails for volumes that administrators wrote.
	file := edit(t, definition,
		"{{ volumeHandle }}", "{{ volumeHandle }}{{ ' and ' ~ pvc.metadata.name if pvc.metadata.labels.owner == 'alice' }}",
		"{{ node.metadata.name }}", "on {{ node.metadata.name }} {{ provisionedPvc.metadata.labels.owner }}")
	stdout, stderr, code := admin.run(t.Context(), "render", file, "--diff", "--volumes")
	if code != 2 {
		t.Errorf("exit status %d, want 2", code)
	}
	wantTexts(t, stdout,
		"2 of 4 volumes: the deletion pod changes; it takes effect at once",
		"3 of 4 volumes: the staging pod changes; it takes effect the next time",
		"1 of 4 volumes: staging cannot be rendered\n",
		"the deletion pod changes, for 2 volumes:\n  default/render-",
		"-    - render-node r7\n+    - on render-node alice r7\n", "the staging pod changes, for 2 volumes:\n",
		"+    - on render-node bob r7\n", "the staging pod changes, for 1 volume:\n  default/render-2   "+last.Name+"\n",
	)
	wantTexts(t, stderr, "staging cannot be rendered, for 1 volume:\n  default/fixed   "+fixed.Name+"\n", "'provisionedPvc' is undefined")

	// What was shown is what the agent does.
	edited := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: name}}
	mustPatch(t, c, edited, func(p *pavv1.PavProvisioner) {
		text := string(p.Spec.VolumeDeletion.PodTemplate.Raw)
		p.Spec.VolumeDeletion.PodTemplate = field(strings.ReplaceAll(text, "{{ volumeHandle }}", "{{ volumeHandle }} of {{ node is defined }}"))
	})
	file = edit(t, edited, " of {{", " with {{")
	stdout, stderr, _ = admin.run(t.Context(), "render", file, "--diff", "--volumes", "--phase", "deletion")
	mustDelete(t, c, claims[2])
	pod, _ := podOf(t, c, claims[2], pavv1.WorkflowDeletion)
	want := "bob gold " + record.Status.Handle + " of False"
	if sees := pod.Annotations["sees"]; sees != want || !strings.Contains(stdout, "-    sees: "+want+"\n") {
		t.Errorf("the agent's pod sees %q, and the command shows:\n%s%s", sees, stdout, stderr)
	}
	end(t, c, pod, workflow.Result{}, 0)
	gone(t, c, last)
}

// staticVolume returns a volume that an administrator wrote, bound to a claim.
func staticVolume(t *testing.T, c *cluster, driver string) *corev1.PersistentVolume {
	t.Helper()
	claim := claimOf("", "fixed")
	claim.Spec.VolumeName = "fixed-" + driver
	mustCreate(t, c, claim)
	pv := mustCreate(t, c, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "fixed"}},
		},
	})
	t.Cleanup(func() {
		mustDeleteLasting(t, c, claim)
		mustDeleteLasting(t, c, pv)
	})
	awaitBound(t, c, claim)
	return pv
}

// A list has more than one page.
func TestRenderVolumes_InPages(t *testing.T) {
	const name, volumes = "paged", 205
	c := start(t)
	definition, class := renderableDriver(t, c, name), classOf(name)
	inPool(nil, class)
	for i := range volumes {
		claim := ownedClaim(name, fmt.Sprint("owner-", i))
		claim.UID = "none"
		record := mustCreate(t, c, &pavv1.PavVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("paged-%03d", i), Labels: map[string]string{pavv1.ProvisionerLabel: name}},
			Spec: pavv1.PavVolumeSpec{
				Provisioner: name, ClaimRef: pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
				StorageClass: rawOf(t, class), Claim: rawOf(t, claim), ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			},
		})
		t.Cleanup(func() { mustDeleteLasting(t, c, record) })
	}
	few := pluginOf(t, c, "few-rights",
		may("get", "pavprovisioners", "persistentvolumes", "persistentvolumeclaims"), may("list", "pavvolumes", "persistentvolumes"))
	file := edit(t, definition, "none", "some")
	// The API server's authorizer has to see the role first.
	eventually(t, "the user has the rights", func(ctx context.Context) (bool, string) {
		stdout, stderr, code := few.run(ctx, "render", file, "--diff", "--volumes", "--phase", "creation")
		return code == 0, stdout + stderr
	})
	stdout, stderr, code := few.run(t.Context(), "render", file, "--diff", "--volumes", "--phase", "deletion")
	if want := fmt.Sprintf("%d of %d volumes: the deletion pod changes; ", volumes, volumes); code != 1 || !strings.Contains(stdout, want) {
		t.Errorf("exit status %d, want 1; %q is not in:\n%s%s", code, want, stdout, stderr)
	}
	wantTexts(t, stderr, "you may not list pavstages: volumes are rendered as if they were staged nowhere\n")
}

func TestRenderVolumes_MissingRights(t *testing.T) {
	const name = "unreadable"
	c := start(t)
	run(t, c)
	definition := renderableDriver(t, c, name)
	bound(t, c, mustCreate(t, c, ownedClaim(name, "me")))
	rights := map[string]rbacv1.PolicyRule{
		"get pavprovisioners": may("get", "pavprovisioners"), "get persistentvolumes": may("get", "persistentvolumes"),
		"get persistentvolumeclaims in namespace \"default\"": may("get", "persistentvolumeclaims"),
		"list pavvolumes": may("list", "pavvolumes"), "list persistentvolumes": may("list", "persistentvolumes"),
	}
	for missing := range rights {
		t.Run(missing, func(t *testing.T) {
			var rules []rbacv1.PolicyRule
			for right, rule := range rights {
				if right != missing {
					rules = append(rules, rule)
				}
			}
			words := strings.FieldsFunc(missing, func(r rune) bool { return r < 'a' || r > 'z' })
			user := pluginOf(t, c, "without-"+strings.Join(words, "-"), rules...)
			eventually(t, "the user has the other rights", func(ctx context.Context) (bool, string) {
				stdout, stderr, code := user.run(ctx, "render", edit(t, definition, "none", "some"), "--diff", "--volumes")
				return code == 2 && strings.Contains(stderr, "you need the right to "+missing), stdout + stderr
			})
		})
	}
}
