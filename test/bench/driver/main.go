package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// settings are the options of the command.
type settings struct {
	name, node string
	// socket is where the driver listens, endpoint the path by which kubelet finds that socket, and registration the
	// socket by which kubelet finds the driver.
	socket, endpoint, registration string
}

func main() {
	s := settings{}
	flag.StringVar(&s.name, "name", "instant.pav-bench", "the name of the driver")
	flag.StringVar(&s.node, "node", "", "the name of the node")
	flag.StringVar(&s.socket, "socket", "/csi/csi.sock", "the socket to serve CSI at")
	flag.StringVar(&s.endpoint, "endpoint", "", "the path of that socket on the node")
	flag.StringVar(&s.registration, "registration", "/registration/instant-reg.sock", "the socket to serve kubelet's registration at")
	flag.Parse()

	//nolint:forbidigo // This is where the program's context comes from.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		stop()
		os.Exit(1) //nolint:gocritic // Nothing is left to be deferred.
	}
}

// run serves until the context ends. CSI is served before kubelet can find it.
func run(ctx context.Context, s settings) error {
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, &identity{name: s.name})
	csi.RegisterControllerServer(server, &controller{})
	csi.RegisterNodeServer(server, &node{name: s.node})
	registerapi.RegisterRegistrationServer(server, &registration{name: s.name, endpoint: s.endpoint})
	group, ctx := errgroup.WithContext(ctx)
	for _, path := range []string{s.socket, s.registration} {
		listener, err := listen(ctx, path)
		if err != nil {
			return err
		}
		group.Go(func() error { return server.Serve(listener) })
	}
	group.Go(func() error {
		<-ctx.Done()
		server.GracefulStop() // this also removes the sockets
		return nil
	})
	return group.Wait()
}

func listen(ctx context.Context, path string) (net.Listener, error) {
	// The socket of a driver that was killed is in the way.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the former socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening at %q: %w", path, err)
	}
	return listener, nil
}
