package stage

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

func TestStats_AreThoseOfTheVolume(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	shared, _ := n.stager.names(Volume{Driver: "driver", Handle: "handle"})
	d := n.Attach(t)
	target := n.PodDirectory(t, "client-uid") + "/mount"
	volume := Volume{Driver: "driver", Handle: "handle"}
	if _, err := n.stager.Stats(t.Context(), volume, target); !errors.Is(err, ErrUnknownVolume) {
		t.Errorf("another stage's target: got %v, want ErrUnknownVolume", err)
	}
	publications, err := n.Dirs.Publications(t.Context(), "stage-a")
	must(t, err)
	must(t, n.Dirs.Record(t.Context(), shared, pavdir.Stage{Driver: "driver", Handle: "handle"}))
	must(t, n.Dirs.RecordPublication(t.Context(), shared, publications[0]))

	get := func() Stats {
		stats, err := n.stager.Stats(t.Context(), volume, target)
		must(t, err)
		return stats
	}
	if stats := get(); stats.Abnormal {
		t.Errorf("a healthy volume: got %+v", stats)
	}
	n.stager.health.Update(&pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: shared}, Status: pavv1.PavStageStatus{
		Conditions: []metav1.Condition{{Type: pavv1.StageDegraded, Status: metav1.ConditionTrue, Message: "its pod is gone"}},
	}})
	if stats := get(); !stats.Abnormal || stats.Message != "its pod is gone" {
		t.Errorf("a degraded volume: got %+v", stats)
	}
	n.stager.health.Timeout = 100 * time.Millisecond
	goOn := d.Hang()
	if stats := get(); !stats.Abnormal || !strings.Contains(stats.Message, "no answer") {
		t.Errorf("a hanging volume: got %+v", stats)
	}
	goOn()
	n.stager.health.Timeout = time.Minute
	d.Die()
	if stats := get(); !stats.Abnormal || !strings.Contains(stats.Message, "dead for good") {
		t.Errorf("a dead volume: got %+v", stats)
	}
	if _, err := n.stager.Stats(t.Context(), volume, n.Kubelet+"/nowhere"); !errors.Is(err, ErrUnknownVolume) {
		t.Errorf("no target: got %v, want ErrUnknownVolume", err)
	}
}
