package csi

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// Services adds the services of one driver to its gRPC server.
type Services func(grpc.ServiceRegistrar)

// ForProvisioner returns the services of a PavProvisioner's driver.
func ForProvisioner(name, nodeID, version string, stager Stager, topology Topology) Services {
	return func(server grpc.ServiceRegistrar) {
		csi.RegisterIdentityServer(server, &identity{driver: name, version: version, constrained: len(topology.Keys) > 0})
		csi.RegisterNodeServer(server, &node{driver: name, nodeID: nodeID, stager: stager, topology: topology})
	}
}

// ForPav returns the services of the driver that gives workflow pods their /pav. Its client must read from the API
// server, not from a cache. The waker wakes the calls that wait until /pav is unmounted from a pod.
func ForPav(nodeID, version string, reader client.Reader, dirs Directories, collector Collector, waker Waker) Services {
	return func(server grpc.ServiceRegistrar) {
		csi.RegisterIdentityServer(server, &identity{driver: pavv1.Driver, version: version})
		csi.RegisterNodeServer(server, &pavNode{nodeID: nodeID, client: reader, dirs: dirs, collector: collector, waker: waker, foreign: newForeignPods()})
	}
}

// Log returns an interceptor that logs each call: its method, a hash of its volume's handle, its code, its duration
// and its notes (observability.Note). Nothing else of the request is logged, since volume contexts and mount flags
// can be secret.
func Log(log logr.Logger, driver string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began := time.Now()
		ctx, noted := observability.WithNotes(logr.NewContext(ctx, log.WithValues(observability.Provisioner, driver)))
		response, err := handler(ctx, request)
		keys := []any{observability.Provisioner, driver, "method", info.FullMethod, "code", status.Code(err).String(), observability.Duration, time.Since(began).String()}
		if r, ok := request.(interface{ GetVolumeId() string }); ok {
			keys = append(keys, "volumeHash", workflow.Hash(r.GetVolumeId()))
		}
		keys = append(keys, noted()...)
		if err != nil {
			log.Info("call failed", append(keys, observability.Reason, status.Convert(err).Message())...)
		} else {
			log.V(1).Info("call served", keys...)
		}
		return response, err
	}
}
