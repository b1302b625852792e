package csi

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// Services are the services of one driver.
type Services struct {
	Identity csi.IdentityServer
	Node     csi.NodeServer

	// TopologyKeys are the label keys of the topology that the Node service reports.
	TopologyKeys []string
}

// ForProvisioner returns the services of a PavProvisioner's driver.
func ForProvisioner(name, nodeID, version string, stager Stager, topology Topology) Services {
	return Services{
		Identity:     &identity{driver: name, version: version, constrained: len(topology.Keys) > 0},
		Node:         &node{driver: name, nodeID: nodeID, stager: stager, topology: topology},
		TopologyKeys: topology.Keys,
	}
}

// ForPav returns the services of the driver that gives workflow pods their /pav. Its client must read from the API
// server, not from a cache. The waker wakes the calls that wait until /pav is unmounted from a pod.
func ForPav(nodeID string, boot pavdir.Boot, version string, reader client.Reader, dirs Directories, collector Collector, waker Waker) Services {
	return Services{
		Identity: &identity{driver: pavv1.Driver, version: version},
		Node:     &pavNode{nodeID: nodeID, boot: boot, client: reader, dirs: dirs, collector: collector, waker: waker, foreign: newForeignPods()},
	}
}

// newServer returns the gRPC server behind the sockets of all drivers, since a server for each would cost more memory
// than the rest of a driver. The driver of a call is that of the socket that accepted its connection: nothing in a
// request can choose another one.
func newServer(log logr.Logger, kubelet registerapi.RegistrationServer) *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(ofSocket{insecure.NewCredentials()}),
		grpc.UnaryInterceptor(intercept(log)),
		// Stopping the server waits for connections that have sent nothing yet.
		grpc.ConnectionTimeout(2*time.Second),
	)
	serve(server, csi.Identity_ServiceDesc, func(d *driver) any { return d.services.Load().Identity })
	serve(server, csi.Node_ServiceDesc, func(d *driver) any { return d.services.Load().Node })
	serve(server, registerapi.Registration_ServiceDesc, func(*driver) any { return kubelet })
	return server
}

// serve adds a service to the server. Each call is served by the implementation of its driver.
func serve(server *grpc.Server, service grpc.ServiceDesc, of func(*driver) any) {
	methods := make([]grpc.MethodDesc, 0, len(service.Methods))
	for _, method := range service.Methods {
		methods = append(methods, grpc.MethodDesc{
			MethodName: method.MethodName,
			Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
				d, err := driverOf(ctx)
				if err != nil {
					return nil, err
				}
				return method.Handler(of(d), ctx, decode, interceptor)
			},
		})
	}
	service.Methods = methods
	server.RegisterService(&service, nil)
}

// ofSocket are the credentials of sockets: who can connect to one is trusted. They pass the driver of a connection to
// its calls.
type ofSocket struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (ofSocket) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*conn)
	if !ok {
		return nil, nil, errors.New("a connection that no driver's socket has accepted")
	}
	return raw, acceptedBy{driver: c.driver}, nil
}

// acceptedBy is what a call knows of its connection.
type acceptedBy struct {
	credentials.CommonAuthInfo
	driver *driver
}

// AuthType implements credentials.AuthInfo.
func (acceptedBy) AuthType() string { return "socket" }

// driverOf returns the driver whose socket accepted the connection of a call.
func driverOf(ctx context.Context) (*driver, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if by, ok := p.AuthInfo.(acceptedBy); ok {
			return by.driver, nil
		}
	}
	return nil, status.Error(codes.Internal, "the driver of the call is not known")
}

// intercept returns an interceptor that refuses the calls of drivers that are being removed, and logs all others: the
// method, a hash of the volume's handle, the code, the duration and the notes (observability.Note). Nothing else of a
// request is logged, since volume contexts and mount flags can be secret.
func intercept(log logr.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		d, err := driverOf(ctx)
		if err != nil {
			return nil, err
		}
		if !d.begin() {
			return nil, status.Error(codes.Unavailable, "the driver is being unregistered")
		}
		defer d.end()
		began := time.Now()
		ctx, noted := observability.WithNotes(logr.NewContext(ctx, log.WithValues(observability.Provisioner, d.name)))
		response, err := handler(ctx, request)
		keys := []any{observability.Provisioner, d.name, "method", info.FullMethod, "code", status.Code(err).String(), observability.Duration, time.Since(began).String()}
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
