// Command cosi-driver is a driver of COSI v1alpha1 for the sidecar that runs beside it. Its store exists only in the answers: each bucket that
// it is asked for is there, and each account too. Each call of the sidecar is written to the standard output, as a line of JSON.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	cosi "sigs.k8s.io/container-object-storage-interface-spec"
)

func main() {
	name := flag.String("name", "reference.objectstorage.k8s.io", "the driver of BucketClasses")
	socket := flag.String("socket", "/var/lib/cosi/cosi.sock", "where to serve")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt) //nolint:forbidigo // the root
	err := serve(ctx, *socket, &driver{name: *name, calls: os.Stdout})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, socket string, d *driver) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("opening the socket: %w", err)
	}
	server := grpc.NewServer()
	cosi.RegisterIdentityServer(server, d)
	cosi.RegisterProvisionerServer(server, d)
	context.AfterFunc(ctx, server.Stop)
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
