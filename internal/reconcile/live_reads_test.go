package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// pagedLists is an API server with PersistentVolumes. It returns one in each page, and its tokens are valid for one
// reading only.
type pagedLists struct {
	client.Reader

	pvs    []corev1.PersistentVolume
	expire int // how many readings expire after their first page

	readings, pages int
	unlimited       bool // a list without a limit was requested
}

func (p *pagedLists) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	p.unlimited = p.unlimited || asked.Limit <= 0
	pvs, ok := list.(*corev1.PersistentVolumeList)
	if !ok || !ofDemo(options) {
		return nil
	}
	reading, at := 0, 0
	if asked.Continue == "" {
		p.readings++
		reading = p.readings
	} else if _, err := fmt.Sscanf(asked.Continue, "%d/%d", &reading, &at); err != nil {
		return err
	}
	if reading != p.readings || at > 0 && reading <= p.expire {
		return apierrors.NewResourceExpired("the token is too old")
	}
	p.pages++
	pvs.Items = append(pvs.Items, p.pvs[at])
	if at++; at < len(p.pvs) {
		pvs.Continue = fmt.Sprintf("%d/%d", reading, at)
	}
	return nil
}

func TestLive_JoinsThePagesOfOneReading(t *testing.T) {
	tests := map[string]struct {
		expire, wantReadings, wantPages int
		wantExpired                     bool
	}{
		"all in one go":         {wantReadings: 1, wantPages: 3},
		"begun again":           {expire: 2, wantReadings: 3, wantPages: 5},
		"not begun without end": {expire: 100, wantReadings: maxBeginnings, wantPages: maxBeginnings, wantExpired: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &pagedLists{expire: test.expire, pvs: []corev1.PersistentVolume{pvOf("a", "demo", "h"), pvOf("b", "demo", "x"), pvOf("c", "demo", "h")}}
			got, err := (&LiveReads{Reader: p}).Holders(t.Context(), StorageKey{Driver: "demo", Handle: "h"})
			want := []Holder{{Kind: KindPV, Name: "a"}, {Kind: KindPV, Name: "c"}}
			if test.wantExpired {
				want = nil
			}
			if diff := cmp.Diff(want, got); diff != "" || apierrors.IsResourceExpired(err) != test.wantExpired || !test.wantExpired && err != nil {
				t.Errorf("holders (-want +got):\n%s, %v", diff, err)
			}
			if p.readings != test.wantReadings || p.pages != test.wantPages || p.unlimited {
				t.Errorf("got %d pages of %d readings, one of all: %t; want %d of %d", p.pages, p.readings, p.unlimited, test.wantPages, test.wantReadings)
			}
		})
	}
}

// lostPage is an API server that fails to return the second page of PavStages.
type lostPage struct{ client.Reader }

func (lostPage) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	stages, ok := list.(*pavv1.PavStageList)
	if !ok {
		return nil
	}
	if (&client.ListOptions{}).ApplyOptions(options).Continue != "" {
		return errors.New("away")
	}
	stages.Continue = "more"
	return nil
}

func TestLive_WithoutAllPages_ReturnsAnError(t *testing.T) {
	if got, err := (&LiveReads{Reader: lostPage{}}).Holders(t.Context(), StorageKey{Driver: "demo", Handle: "h"}); err == nil {
		t.Errorf("half a list was taken for all: %v", got)
	}
}

func TestLive_FindsPersistentVolumesWithTheLabelAndWithout(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	pvs := fake.NewClientBuilder().WithScheme(scheme)
	for name, labels := range map[string]map[string]string{
		"labelled": {pavv1.ProvisionerLabel: "demo"}, "unlabelled": nil, "otherwise": {pavv1.StorageLabel: "s"},
	} {
		for driver, handle := range map[string]string{"demo": "h", "demo2": "h", "other": "demo/h"} {
			pv := pvOf(name+"-"+driver, driver, handle)
			pv.Labels = maps.Clone(labels)
			if _, labelled := labels[pavv1.ProvisionerLabel]; labelled {
				pv.Labels[pavv1.ProvisionerLabel] = driver
			}
			pvs.WithObjects(&pv)
		}
	}
	live := &LiveReads{Reader: pvs.Build()}
	for driver, handle := range map[string]string{"demo": "h", "other": "demo/h"} {
		got, err := live.Holders(t.Context(), StorageKey{Driver: driver, Handle: handle})
		want := []Holder{{Kind: KindPV, Name: "labelled-" + driver}, {Kind: KindPV, Name: "otherwise-" + driver}, {Kind: KindPV, Name: "unlabelled-" + driver}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("holders of %s (-want +got):\n%s, %v", driver, diff, err)
		}
	}
}
