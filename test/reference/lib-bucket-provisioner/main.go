// Command lib-bucket-provisioner serves ObjectBucketClaims with the library of that name. The library does all that concerns Kubernetes; the
// store behind it exists only in the answers: each bucket that it is asked for is there, and each account too. With -functions, it is an S3
// server. The endpoint is that of the StorageClass. Each call of the library is written to the standard output, as a line of JSON.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kube-object-storage/lib-bucket-provisioner/pkg/provisioner"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the path of a kubeconfig")
	name := flag.String("name", "example.com/library", "the provisioner of StorageClasses")
	functions := flag.String("functions", "", "the path of s3.sh: make buckets and accounts in an S3 server with it, as the administrator in the environment")
	flag.Parse()
	served := &store{calls: os.Stdout}
	if *functions != "" {
		served.server = &gateway{functions: *functions}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt) //nolint:forbidigo // the root
	err := run(ctx, *kubeconfig, *name, served)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, name string, served *store) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// These are the limits that PaV has: with the defaults, claims would wait for them.
	config.QPS, config.Burst = 1000, 2000
	p, err := provisioner.NewProvisioner(config, name, served, "")
	if err != nil {
		return fmt.Errorf("making the provisioner: %w", err)
	}
	return p.RunWithContext(ctx)
}
