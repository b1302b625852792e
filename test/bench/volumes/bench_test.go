package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/bench/sample"
)

// newRunner returns a runner whose world has no cluster, and the lines that it records.
func newRunner(t *testing.T, rounds int) (*runner, *[]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	return &runner{
		world: &world{kube: fake.NewClientBuilder().WithScheme(scheme).Build()}, rounds: rounds,
		deadline: time.Now().Add(time.Hour), timeout: time.Minute,
		pause: func(context.Context) error { return nil }, progress: t.Logf,
		record: func(_ benchCase, s subject, f figure, round int, value float64) error {
			lines = append(lines, fmt.Sprintf("%s %s %d: %.0f", s.name, f.name, round, value))
			return nil
		},
	}, &lines
}

// counting returns a subject that creates a pod, and whose figures are how many subjects were measured before it.
func counting(name string, measured *int) subject {
	return subject{name, product, func(ctx context.Context, w *world) ([]float64, error) {
		defer func() { *measured++ }()
		second := math.NaN()
		if name == "b" {
			second = 100 + float64(*measured)
		}
		return []float64{float64(*measured), second}, w.create(ctx, w.client())
	}}
}

func TestEachRoundMeasuresAll_BeginsWithAnother_AndRoundZeroDoesNotCount(t *testing.T) {
	r, lines := newRunner(t, 2)
	measured := 0
	c := benchCase{
		name: "case", warm: true, figures: []figure{{"first", "s"}, {"second", "s"}},
		subjects: []subject{counting("a", &measured), counting("b", &measured), counting("c", &measured)},
		notes:    func(context.Context, *world) (string, error) { return "noted", nil },
	}
	found, err := r.measure(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]sample.Sample{{{5, 7}, {3, 8}, {4, 6}}, {nil, {103, 108}, nil}}
	if diff := cmp.Diff(want, found.taken); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found.notes != "noted" || len(*lines) != 8 || (*lines)[0] != "b first 1: 3" {
		t.Errorf("notes %q, lines %q", found.notes, *lines)
	}
	pods := &corev1.PodList{}
	if err := r.world.kube.List(t.Context(), pods); err != nil || len(pods.Items) > 0 || len(r.world.undo) > 0 {
		t.Errorf("left are %d pods and %d things to undo (%v)", len(pods.Items), len(r.world.undo), err)
	}
}

func TestFailureEndsTheCase_RemovesWhatItHasCreated_AndKeepsEarlierRounds(t *testing.T) {
	r, _ := newRunner(t, 3)
	measured, broken := 0, errors.New("broken")
	fails := subject{"fails", peer, func(ctx context.Context, w *world) ([]float64, error) {
		err := w.create(ctx, w.client())
		if measured == 2 {
			err = errors.Join(err, broken)
		}
		return []float64{0}, err
	}}
	c := benchCase{name: "case", figures: []figure{{"first", "s"}, {"second", "s"}}, subjects: []subject{counting("a", &measured), fails}}
	c.prepare = func(ctx context.Context, w *world) error { return w.create(ctx, w.client()) }
	found, err := r.measure(t.Context(), c)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "round 2, fails") {
		t.Errorf("got %v", err)
	}
	if len(found.taken[0][0]) < 2 {
		t.Errorf("got %v", found.taken)
	}
	pods := &corev1.PodList{}
	if err := r.world.kube.List(t.Context(), pods); err != nil || len(pods.Items) > 0 {
		t.Errorf("left are %d pods (%v)", len(pods.Items), err)
	}
}

func TestNoRoundBeginsAfterTheDeadline(t *testing.T) {
	r, _ := newRunner(t, 100)
	measured := 0
	late := subject{"late", product, func(context.Context, *world) ([]float64, error) {
		r.deadline = time.Now()
		return []float64{1}, nil
	}}
	found, err := r.measure(t.Context(), benchCase{name: "case", figures: []figure{{"first", "s"}, {"second", "s"}}, subjects: []subject{late, counting("a", &measured)}})
	if err != nil || len(found.taken[0][0]) != 1 || measured != 1 {
		t.Errorf("got %v of %d, %v", found.taken, measured, err)
	}
}
