package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/test/bench/machine"
)

// settings are the options of the command.
type settings struct {
	assets, manifest, commit string

	nodes, caches, provisioners, volumes, rate int
	period                                     time.Duration
}

func main() {
	s := settings{}
	flag.StringVar(&s.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"), "the directory of etcd, kube-apiserver and kube-controller-manager")
	flag.StringVar(&s.manifest, "manifest", "deployment.yaml", "PaV's objects")
	flag.StringVar(&s.commit, "commit", "unknown", "the commit of PaV, for the report")
	flag.IntVar(&s.nodes, "nodes", 1000, "how many nodes the cluster has")
	flag.IntVar(&s.caches, "caches", 50, "for how many of them a node agent's caches run")
	flag.IntVar(&s.provisioners, "provisioners", 1000, "how many PavProvisioners there are")
	flag.IntVar(&s.volumes, "volumes", 10000, "how many volumes there are, each staged on one node")
	flag.IntVar(&s.rate, "rate", 20, "how many claims are created each second while there is work")
	flag.DurationVar(&s.period, "period", time.Minute, "how long each state is measured")
	flag.Parse()

	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	//nolint:forbidigo // This is where the program's context comes from.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work := func() error { return measure(ctx, s, os.Stdout) }
	if role := os.Getenv(childRole); role != "" {
		work = func() error { return runChild(ctx, role, os.Stdin, os.Stdout) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		stop()
		os.Exit(1) //nolint:gocritic // Nothing is left to be deferred.
	}
}

// measure fills a cluster and measures the agents in it: after their start, at rest, and while claims come.
func measure(ctx context.Context, s settings, out io.Writer) (err error) {
	r := &report{out: out}
	on, err := machine.Describe()
	if err != nil {
		return err
	}
	r.linef("# PaV in a large cluster\n\nCommit %s, %s.", s.commit, on)
	r.linef("%d nodes, %d of them with a node agent's caches; %d provisioners, %d volumes.\n", s.nodes, s.caches, s.provisioners, s.volumes)
	c, err := begin(ctx, s)
	defer func() { err = errors.Join(err, c.end()) }()
	if err != nil {
		return err
	}
	if err := c.fill(ctx, r); err != nil {
		return err
	}
	r.head()
	if err := c.rest(ctx, r); err != nil {
		return err
	}
	if err := c.work(ctx, r); err != nil {
		return err
	}
	if err := c.restart(ctx, r); err != nil {
		return err
	}
	averages, err := machine.Load()
	r.linef("\nLoad at the end: %s.", averages)
	return err
}
