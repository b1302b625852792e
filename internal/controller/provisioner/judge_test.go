package provisioner

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
)

func TestJudgment_OfALateCheckIsReplaced(t *testing.T) {
	p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "u1", Generation: 1}}
	now := time.Unix(1000, 0)
	late := []definition.Finding{{Severity: definition.Warning, Field: "spec", Late: true, Message: "no time"}}
	all := judgments{known: map[string]judgment{}}

	found := all.get("demo").next(p, late, now)
	all.put("demo", found)
	if found.mistakes != "" {
		t.Errorf("lateness counts as a mistake: %s", found.mistakes)
	}
	if !found.holds(p, now) || found.holds(p, now.Add(firstRecheck)) {
		t.Error("it is not repeated in time")
	}
	if got := all.wait("demo", now.Add(time.Second)); got != firstRecheck-time.Second {
		t.Errorf("the next pass is after %s", got)
	}
	if found = found.next(p, late, now); found.holds(p, now.Add(2*firstRecheck)) || !found.holds(p, now.Add(firstRecheck)) {
		t.Error("the second one is not repeated after twice the time")
	}
	for range 1000 {
		found = found.next(p, late, now)
	}
	if found.holds(p, now.Add(lastRecheck)) || !found.holds(p, now.Add(lastRecheck-1)) {
		t.Errorf("in the end it is repeated after %s", found.due.Sub(now))
	}

	found = found.next(p, []definition.Finding{{Severity: definition.Error, Field: "spec.a", Message: "no"}}, now)
	all.put("demo", found)
	if !found.holds(p, now.Add(1000*time.Hour)) || found.mistakes != "spec.a: no" || all.wait("demo", now) != 0 {
		t.Errorf("a whole check does not last: %+v", found)
	}
	for name, change := range map[string]func(*pavv1.PavProvisioner){
		"another definition":  func(p *pavv1.PavProvisioner) { p.Generation++ },
		"another provisioner": func(p *pavv1.PavProvisioner) { p.UID = "u2" },
	} {
		changed := p.DeepCopy()
		change(changed)
		if found.holds(changed, now) {
			t.Errorf("%s is judged by the former one", name)
		}
	}
}
