package reconcile

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestHolds(t *testing.T) {
	tests := map[string]struct {
		stage pavv1.PavStage
		want  bool
	}{
		"a new stage holds":                   {stage: pavv1.PavStage{}, want: true},
		"a staged volume holds":               {stage: pavv1.PavStage{Status: pavv1.PavStageStatus{Phase: pavv1.StageStaged}}, want: true},
		"the record of a failed one does not": {stage: pavv1.PavStage{Status: pavv1.PavStageStatus{Phase: pavv1.StageFailed}}, want: false},
		"unless it is still being reverted":   {stage: pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{pavv1.StageFinalizer}}, Status: pavv1.PavStageStatus{Phase: pavv1.StageFailed}}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HoldsVolume(&test.stage); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// pvOf returns a PersistentVolume of a driver and handle.
func pvOf(name, driver, handle string) corev1.PersistentVolume {
	return corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
	}}
}

func volumeOf(name string, status pavv1.PavVolumeStatus) pavv1.PavVolume {
	return pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pavv1.PavVolumeSpec{Provisioner: "demo"}, Status: status}
}

func stageOf(name, volume, handle string, phase pavv1.StagePhase) pavv1.PavStage {
	return pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:   pavv1.PavStageSpec{Provisioner: "demo", VolumeName: volume, VolumeHandle: handle, NodeName: "n1"},
		Status: pavv1.PavStageStatus{Phase: phase}}
}

func TestHoldersOfStorage(t *testing.T) {
	tests := map[string]struct {
		all  client.ObjectList
		want []Holder
	}{
		"nobody": {all: &pavv1.PavVolumeList{}},
		"PersistentVolumes of any name": {
			all:  &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{pvOf("static", "demo", "h"), pvOf("other", "demo", "x"), pvOf("theirs", "demo2", "h"), {}}},
			want: []Holder{{Kind: KindPV, Name: "static"}},
		},
		"records, retained ones too": {
			all: &pavv1.PavVolumeList{Items: []pavv1.PavVolume{
				volumeOf("a", pavv1.PavVolumeStatus{Handle: "h", Phase: pavv1.VolumeRetained}),
				volumeOf("b", pavv1.PavVolumeStatus{Plan: &pavv1.VolumePlan{Handle: "h"}}),
				volumeOf("c", pavv1.PavVolumeStatus{Handle: "x", Plan: &pavv1.VolumePlan{Handle: "h"}}),
				volumeOf("d", pavv1.PavVolumeStatus{Conflict: &pavv1.StorageConflict{Handle: "h"}}),
			}},
			want: []Holder{{Kind: KindVolume, Name: "a", Phase: pavv1.VolumeRetained}, {Kind: KindVolume, Name: "b"}},
		},
		"a record without a handle has the default one": {
			all:  &pavv1.PavVolumeList{Items: []pavv1.PavVolume{volumeOf("h", pavv1.PavVolumeStatus{})}},
			want: []Holder{{Kind: KindVolume, Name: "h"}},
		},
		"stages of the storage, and of the volume's name": {
			all: &pavv1.PavStageList{Items: []pavv1.PavStage{
				stageOf("s1", "static", "h", pavv1.StageStaged), stageOf("s2", "mine", "x", ""), stageOf("s3", "static", "x", ""), stageOf("s4", "mine", "h", pavv1.StageFailed),
			}},
			want: []Holder{{Kind: KindStage, Name: "s1", Node: "n1"}, {Kind: KindStage, Name: "s2", Node: "n1"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, holders(holdingsOf(test.all), StorageKey{Driver: "demo", Handle: "h", Name: "mine"})); diff != "" {
				t.Errorf("holders (-want +got):\n%s", diff)
			}
		})
	}
}

// slowLists is an API server whose lists wait until the test releases them.
type slowLists struct {
	client.Reader

	mu    sync.Mutex
	lists int
	pvs   []corev1.PersistentVolume
	err   error

	begun, goOn chan struct{}
}

func (s *slowLists) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	pvs, ok := list.(*corev1.PersistentVolumeList)
	if !ok || !ofDemo(options) {
		return nil
	}
	s.mu.Lock()
	s.lists++
	pvs.Items = append([]corev1.PersistentVolume{}, s.pvs...)
	err := s.err
	s.mu.Unlock()
	s.begun <- struct{}{}
	<-s.goOn
	return err
}

// ofDemo reports whether a list has objects with the label of the driver "demo".
func ofDemo(options []client.ListOption) bool {
	o := (&client.ListOptions{}).ApplyOptions(options)
	return o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set{pavv1.ProvisionerLabel: "demo"})
}

// waiter is a context that signals each call of Done, by which its caller begins to wait for the end of the context or
// for something else.
type waiter struct {
	context.Context //nolint:containedctx // it is one

	waits chan<- struct{}
}

func (w waiter) Done() <-chan struct{} {
	w.waits <- struct{}{}
	return w.Context.Done()
}

// Callers that ask while a read runs share the next read, which sees everything that existed when they asked.
func TestLiveReads_AreShared_AndNeverOlderThanTheCall(t *testing.T) {
	const many = 20
	s := &slowLists{begun: make(chan struct{}), goOn: make(chan struct{})}
	l := &LiveReads{Reader: s}
	of := StorageKey{Driver: "demo", Handle: "h"}
	first := make(chan int, 1)
	ask := func(ctx context.Context, answers chan<- int) {
		holders, err := l.Holders(ctx, of)
		if err != nil {
			answers <- -1
			return
		}
		answers <- len(holders)
	}
	go ask(t.Context(), first)
	<-s.begun
	s.mu.Lock()
	s.pvs = append(s.pvs, pvOf("new", "demo", "h")) // the first read has missed it
	s.mu.Unlock()
	later := make(chan int, many)
	waits := make(chan struct{}, many)
	for range many {
		go ask(waiter{t.Context(), waits}, later)
	}
	for range many { // one caller waits for the first read, to read next; the others wait for that caller
		<-waits
	}
	s.goOn <- struct{}{}
	if got := <-first; got != 0 {
		t.Errorf("the first read: got %d holders", got)
	}
	for answered := 0; answered < many; {
		select {
		case <-s.begun:
			s.goOn <- struct{}{}
		case got := <-later:
			answered++
			if got != 1 {
				t.Errorf("a read that was asked for after the PersistentVolume was there: got %d holders", got)
			}
		}
	}
	if s.lists != 2 {
		t.Errorf("%d readers made %d reads, want 2", many+1, s.lists)
	}
	s.err = errors.New("away")
	go ask(t.Context(), first)
	<-s.begun
	s.goOn <- struct{}{}
	if got := <-first; got != -1 {
		t.Errorf("an API server that does not answer: got %d holders", got)
	}
}
