package doctor

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

func eventAbout(namespace, name string, subject types.UID) client.Object {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: corev1.ObjectReference{UID: subject}}
}

func TestEventsOf_AreThoseOfPaV(t *testing.T) {
	f := healthy(t)
	f.Pods = append(f.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "create-1", UID: "p1"}})
	events := []client.Object{
		eventAbout("storage", "agent", "a pod that is gone"), eventAbout("pav-pods", "pod", "another"),
		eventAbout("default", "volume", "v1"), eventAbout("default", "node", "n1"),
		eventAbout("apps", "pod", "p1"), eventAbout("apps", "client", "c1"), eventAbout("other", "volume", "v1"),
	}
	unread := map[right]string{}
	found, err := eventsOf(t.Context(), reader(t, allowed, events...), f, unread)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range found {
		names = append(names, found[i].Namespace+"/"+found[i].Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"apps/pod", "default/volume", "pav-pods/pod", "storage/agent"}, names); diff != "" || len(unread) > 0 {
		t.Errorf("unread: %q (-want +got):\n%s", unread, diff)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right"))
	if found, err = eventsOf(t.Context(), reader(t, func(string) error { return forbidden }), f, unread); err != nil || len(found) > 0 ||
		unread["list events in namespace apps"] != "you may not list events in namespace apps" {
		t.Errorf("got %d events, %v, unread: %q", len(found), err, unread)
	}
}

func TestWriteBundle(t *testing.T) {
	f := healthy(t)
	f.Agents[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller-agent", RestartCount: 1}}
	streams, _, _, told := genericiooptions.NewTestIOStreams()
	cluster := &cli.Cluster{Objects: reader(t, allowed).(client.WithWatch), Kube: kubefake.NewClientset()}
	name := filepath.Join(t.TempDir(), "pav.tar.gz")
	if err := writeBundle(t.Context(), &cli.Env{IOStreams: streams}, cluster, f, Examine(f), name); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(told.String(), name+" is written") {
		t.Errorf("got %v, %v, %q", info.Mode(), err, told)
	}
	var logs []string
	for _, log := range logsOf(cluster, f) {
		logs = append(logs, log.Name)
	}
	slices.Sort(logs)
	if diff := cmp.Diff([]string{"controller-agent-a/controller-agent", "controller-agent-a/controller-agent.previous"}, logs); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}

	err = writeBundle(t.Context(), &cli.Env{IOStreams: streams}, cluster, f, Examine(f), name)
	after, left := os.ReadFile(name)
	if !errors.Is(err, fs.ErrExist) || left != nil || string(after) != string(before) {
		t.Errorf("over an existing file: %v, %v", err, left)
	}
}

func TestCreate_ThatFails_LeavesNoFile(t *testing.T) {
	failure := errors.New("the log cannot be read")
	name := filepath.Join(t.TempDir(), "pav.tar.gz")
	err := create(name, func(w io.Writer) error {
		_, err := w.Write([]byte("the beginning"))
		return errors.Join(err, failure)
	})
	if _, left := os.Stat(name); !errors.Is(err, failure) || !errors.Is(left, fs.ErrNotExist) {
		t.Errorf("got %v, and the file: %v", err, left)
	}
}
