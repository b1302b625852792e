package provisioner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// judgment is the result of the check of one generation of a definition.
type judgment struct {
	uid        types.UID
	generation int64
	mistakes   string

	// late is how many checks in a row ran out of time. Their findings are incomplete, so the definition is checked
	// again after due.
	late int
	due  time.Time
}

// judgedAtOnce is how many definitions are checked at once: checks of the webhook, which a user waits for, take
// precedence.
const judgedAtOnce = 1

// The time from a check that ran out of time to the next one. A definition may be so large that every check does.
const firstRecheck, lastRecheck = 10 * time.Second, 10 * time.Minute

// recheck returns the time until the next check, after so many in a row that ran out of time.
func recheck(late int) time.Duration {
	wait := firstRecheck
	for ; late > 1 && wait < lastRecheck; late-- {
		wait *= 2
	}
	return min(wait, lastRecheck)
}

// holds reports whether the judgment is of the current provisioner, and is complete.
func (j judgment) holds(p *pavv1.PavProvisioner, now time.Time) bool {
	return j.isOf(p) && (j.late == 0 || now.Before(j.due))
}

func (j judgment) isOf(p *pavv1.PavProvisioner) bool {
	return j.uid == p.UID && j.generation == p.Generation
}

// next returns the judgment that follows this one.
func (j judgment) next(p *pavv1.PavProvisioner, findings []definition.Finding, now time.Time) judgment {
	found := judgment{uid: p.UID, generation: p.Generation, mistakes: summary(findings)}
	if !definition.Late(findings) {
		return found
	}
	found.late = 1
	if j.isOf(p) {
		found.late += j.late
	}
	found.due = now.Add(recheck(found.late))
	return found
}

// judgments has the judgments of all definitions, by name.
type judgments struct {
	mu    sync.Mutex
	known map[string]judgment

	// running has an item for each check that runs.
	running chan struct{}
}

// wait returns the time until a provisioner's definition is checked again; 0 means never.
func (j *judgments) wait(name string, now time.Time) time.Duration {
	known := j.get(name)
	if known.late == 0 {
		return 0
	}
	return max(known.due.Sub(now), time.Millisecond)
}

func (j *judgments) get(name string) judgment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[name]
}

func (j *judgments) put(name string, found judgment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.known[name] = found
}

func (j *judgments) forget(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.known, name)
}

// judge returns the mistakes of a definition. It reads the object from the API server, once for each generation, as
// the cached object does not have the fields that PaV does not know.
func (r *Reconciler) judge(ctx context.Context, p *pavv1.PavProvisioner) (string, error) {
	known := r.judged.get(p.Name)
	if known.holds(p, time.Now()) {
		return known.mistakes, nil
	}
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(pavv1.GroupVersion.WithKind("PavProvisioner"))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(p), whole); apierrors.IsNotFound(err) {
		return "", reconcile.ErrStale
	} else if err != nil {
		return "", fmt.Errorf("reading the whole definition of PavProvisioner %q: %w", p.Name, err)
	}
	if whole.GetUID() != p.UID || whole.GetGeneration() != p.Generation {
		return "", reconcile.ErrStale
	}
	select {
	case r.judged.running <- struct{}{}:
		defer func() { <-r.judged.running }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting to check the definition of PavProvisioner %q: %w", p.Name, ctx.Err())
	}
	found := known.next(p, r.Definitions.Check(whole.Object), time.Now())
	r.judged.put(p.Name, found)
	return found.mistakes, nil
}

// mentioned is how many mistakes a condition lists, of at most so many bytes each.
const mentioned, mentionedBytes = 3, 600

func summary(findings []definition.Finding) string {
	var mistakes []string
	for _, f := range findings {
		if f.Severity == definition.Error {
			mistakes = append(mistakes, observability.Clip(f.String(), mentionedBytes))
		}
	}
	if more := len(mistakes) - mentioned; more > 0 {
		mistakes = append(mistakes[:mentioned], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(mistakes, "; ")
}
