package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// canary is in every value that a test wants to be kept secret: the search after all tests is for it.
const canary = "canary-5d1f0c"

// beginOfToken is how tokens of service accounts begin: with {"alg": in base64.
const beginOfToken = "eyJhbGciOi"

// planted is the message of an event of the search's own, which it must find.
const planted = "the search for secrets begins"

// Where secrets are searched for.
const (
	inLogs    = "logs of the agents"
	inEvents  = "events"
	inMetrics = "metrics"
	inMounts  = "mounts"
)

// search finds secrets where none may be. What it reads of each kind has something that is known to be there, so that a
// search which finds nothing at all is seen.
type search struct {
	secrets []string

	mu    sync.Mutex
	found map[string]bool            // where a secret is
	known map[string]map[string]bool // by kind, what is known to be there, and whether it was seen
}

func newSearch() *search {
	return &search{
		secrets: append(inBase64(canary), canary, beginOfToken),
		found:   map[string]bool{},
		known: map[string]map[string]bool{
			inLogs:    {`"level":"DEBUG`: false}, // the agents log all that they can
			inEvents:  {planted: false},
			inMetrics: {"pav_": false},
			inMounts:  {kubeletDir + "/pods/": false},
			inEtcd:    {pavv1.Group: false},
		},
	}
}

// inBase64 returns what a text is a part of in base64, wherever in the whole it begins.
func inBase64(text string) []string {
	var all []string
	for before := range 3 {
		whole := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		all = append(all, whole[(8*before+5)/6:8*(before+len(text))/6])
	}
	return all
}

// expect says that something, which is no secret, must be found by the end.
func (s *search) expect(kind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[kind][text] = false
}

// look searches a text. Of a secret, it keeps where it is, and not what it is.
func (s *search) look(kind, where, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for known := range s.known[kind] {
		s.known[kind][known] = s.known[kind][known] || strings.Contains(text, known)
	}
	for _, secret := range s.secrets {
		if before, _, found := strings.Cut(text, secret); found {
			s.found[fmt.Sprintf("%s: %s, line %d", kind, where, strings.Count(before, "\n")+1)] = true
		}
	}
}

// result objects if a secret was found, or if something that is known to be there was not.
func (s *search) result() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []error
	for _, where := range slices.Sorted(maps.Keys(s.found)) {
		problems = append(problems, errors.New("there is a secret in "+where))
	}
	for kind, all := range s.known {
		for known, seen := range all {
			if !seen {
				problems = append(problems, fmt.Errorf("the search of %s cannot be relied on: it has not found %q", kind, known))
			}
		}
	}
	return errors.Join(problems...)
}

// keeper keeps for the search what ends before the last test does: logs of agents that were replaced, and events, which go
// with their namespaces.
type keeper struct {
	*search
	disks     map[string]string // by node
	directory string            // of logs
	planted   *corev1.Event
	stop      context.CancelFunc
	ended     sync.WaitGroup

	mu  sync.Mutex
	err error // the last one of keeping logs
}

// newKeeper begins to keep what the cluster tells.
func newKeeper(ctx context.Context, config *rest.Config) (*keeper, error) {
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("watching events: %w", err)
	}
	k := &keeper{search: newSearch(), disks: map[string]string{}}
	out, err := exec.CommandContext(ctx, cluster, "status", "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the cluster's status: %w", err)
	}
	var status struct{ Nodes []struct{ Name, Disk string } }
	if err := json.Unmarshal(out, &status); err != nil {
		return nil, fmt.Errorf("reading the cluster's status: %w", err)
	}
	for _, node := range status.Nodes {
		k.disks[node.Name] = node.Disk
	}
	if k.directory, err = os.MkdirTemp(filepath.Dir(os.Getenv("KUBECONFIG")), "logs-"); err != nil {
		return nil, fmt.Errorf("keeping logs: %w", err)
	}
	k.planted = &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "e2e-", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{Kind: "Namespace", Name: metav1.NamespaceDefault}, Reason: "Searching", Message: planted,
	}
	if err := kube.Create(ctx, k.planted); err != nil {
		return nil, fmt.Errorf("making an event: %w", err)
	}
	ctx, k.stop = context.WithCancel(ctx)
	k.ended.Go(func() { again(ctx, func() { k.keepEvents(ctx, watcher) }) })
	k.ended.Go(func() { again(ctx, k.keepLogs) })
	return k, nil
}

// again does something each second, until ctx ends.
func again(ctx context.Context, do func()) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// keepEvents looks at all events, until the API server ends its answer.
func (k *keeper) keepEvents(ctx context.Context, watcher client.WithWatch) {
	list := &corev1.EventList{}
	if watcher.List(ctx, list) != nil {
		return // It is asked again.
	}
	for i := range list.Items {
		k.lookAt(&list.Items[i])
	}
	events, err := watcher.Watch(ctx, &corev1.EventList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return
	}
	defer events.Stop()
	for changed := range events.ResultChan() {
		if event, is := changed.Object.(*corev1.Event); is {
			k.lookAt(event)
		}
	}
}

func (k *keeper) lookAt(event *corev1.Event) {
	of := event.InvolvedObject
	k.look(inEvents, fmt.Sprintf("%s of %s %s/%s", event.Reason, of.Kind, of.Namespace, of.Name), fmt.Sprint(event.Message, event.Annotations))
}

// keepLogs gives the logs of all agents on the nodes' disks a further name, by which they outlive their pods.
func (k *keeper) keepLogs() {
	for node, disk := range k.disks {
		files, err := filepath.Glob(filepath.Join(disk, "var-log/pods/pav_*/*/*.log*"))
		for _, file := range files {
			err = errors.Join(err, k.keepLog(node, file))
		}
		if err != nil {
			k.mu.Lock()
			k.err = err
			k.mu.Unlock()
		}
	}
}

func (k *keeper) keepLog(node, file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || strings.HasSuffix(file, ".gz") {
		return nil // It was kept before kubelet removed or compressed it.
	}
	if err != nil {
		return fmt.Errorf("keeping a log: %w", err)
	}
	pod := filepath.Base(filepath.Dir(filepath.Dir(file)))
	// A log that is full gets another name, and its former name another file.
	name := fmt.Sprintf("%s_%s_%d", node, pod, info.Sys().(*syscall.Stat_t).Ino)
	if err := os.Link(file, filepath.Join(k.directory, name)); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keeping a log: %w", err)
	}
	return nil
}

// check searches, at the end, what was kept and what there is, etcd's keys besides those of Secrets among it.
func (k *keeper) check(ctx context.Context) error {
	k.stop()
	k.ended.Wait()
	k.keepLogs()
	logs, err := os.ReadDir(k.directory)
	err = errors.Join(err, k.err)
	for _, log := range logs {
		text, failed := os.ReadFile(filepath.Join(k.directory, log.Name()))
		err = errors.Join(err, failed)
		k.look(inLogs, log.Name(), string(text))
	}
	all, failed := agents(ctx)
	err = errors.Join(err, failed)
	for i := range all {
		text, failed := scraper.Metrics(ctx, &all[i])
		err = errors.Join(err, failed)
		k.look(inMetrics, all[i].Name, text)
	}
	for _, node := range nodes {
		err = errors.Join(err, k.lookAtMounts(ctx, node))
	}
	err = errors.Join(err, eachInEtcd(ctx, func(key string, value []byte) {
		if !strings.HasPrefix(key, secretsInEtcd) {
			k.look(inEtcd, key, string(value))
		}
	}))
	return errors.Join(err, client.IgnoreNotFound(kube.Delete(ctx, k.planted)), os.RemoveAll(k.directory), k.result())
}

func (k *keeper) lookAtMounts(ctx context.Context, node string) error {
	for _, file := range []string{"/proc/1/mountinfo", "/proc/1/mounts"} {
		text, err := onNode(ctx, node, "cat", file)
		if err != nil {
			return err
		}
		k.look(inMounts, file+" of "+node, text)
	}
	return nil
}

// The search after all tests finds each kind of secret, in each way to write it.
func TestSearch_FindsSecrets(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a canary": canary + "-x", "in base64": encoded("{}" + canary), "and one byte later": encoded("{ }" + canary + "}"),
		"and two": encoded("{  }" + canary + "}}"), "a token": encoded(`{"alg":"RS256","kid":"x"}`) + ".e30.x",
	} {
		s := newSearch()
		s.look(inLogs, "a file", "first line\nsecond line\n")
		clean := fmt.Sprint(s.result())
		s.look(inLogs, "a file", "first line\nthe second has "+text+"\n")
		got := fmt.Sprint(s.result())
		if strings.Contains(clean, "a secret") || !strings.Contains(got, "a secret in "+inLogs+": a file, line 2") || strings.Contains(got, text) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	s := newSearch()
	if got := fmt.Sprint(s.result()); strings.Count(got, "cannot be relied on") != 5 {
		t.Errorf("of a search that has found nothing, the result is %s", got)
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
