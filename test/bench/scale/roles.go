package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/node"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/monitor"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/test/controlplane"
)

// The roles of child processes.
const (
	controllerRole = "controller agent"
	nodesRole      = "node agents"
)

func runController(ctx context.Context, config *rest.Config) error {
	o := controller.DefaultOptions()
	observability.LimitProfiles(o.ProfilingAddress) // as cmd/pav does
	o.Namespace, o.MetricsAddress, o.ProbeAddress, o.WebhookAddress = controlplane.Namespace, "0", "0", "0"
	return controller.Run(ctx, config, o, logr.Discard())
}

// startCaches starts the caches of node agents, and waits until they are filled.
func startCaches(ctx context.Context, config *rest.Config, o orders) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		return err
	}
	for i := range o.Count {
		if err := startCachesOf(ctx, rest.CopyConfig(config), scheme, nodeName(o.From+i)); err != nil {
			return err
		}
	}
	return nil
}

// startCachesOf starts the caches of one node agent, with the informers that it uses.
func startCachesOf(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, name string) error {
	own, err := node.CacheOptions(name)
	if err != nil {
		return err
	}
	results, err := collect.CacheOptions(name)
	if err != nil {
		return err
	}
	volumes, err := monitor.CacheOptions(name)
	if err != nil {
		return err
	}
	pods, stages := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	stages.SetGroupVersionKind(pavv1.GroupVersion.WithKind("PavStage"))
	for _, one := range []struct {
		options cache.Options
		kinds   []client.Object
	}{
		{own, []client.Object{&pavv1.PavProvisioner{}, &storagev1.CSIDriver{}, pods, stages}},
		{results, []client.Object{&corev1.Pod{}}},
		{volumes, []client.Object{&pavv1.PavVolume{}}},
		{monitor.ArrivalOptions(name), []client.Object{&corev1.Pod{}}},
	} {
		one.options.Scheme = scheme
		filled, err := cache.New(config, one.options)
		if err != nil {
			return err
		}
		for _, kind := range one.kinds {
			if _, err := filled.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
				return err
			}
		}
		go func() { _ = filled.Start(ctx) }()
		if !filled.WaitForCacheSync(ctx) {
			return fmt.Errorf("the caches of node %s are not filled", name)
		}
	}
	return nil
}
