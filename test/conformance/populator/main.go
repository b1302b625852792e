// Program populator replaces registry.k8s.io/sig-storage/hello-populator in the external-storage suite. It is a volume
// populator (KEP-1495) for data sources of kind Hello. Each Hello describes one file. The populator does not depend on
// PaV. It needs only the permissions in the suite's own manifests, and takes the arguments that these manifests
// contain:
//
//	populator --mode=controller --image-name=IMAGE --namespace=NAMESPACE [--http-endpoint=ADDRESS]
//	populator --mode=populate --file-name=PATH --file-contents=TEXT
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	mode := flag.String("mode", "", "controller or populate")
	image := flag.String("image-name", "", "controller: the image of the pods that populate: this program's own")
	namespace := flag.String("namespace", "hello", "controller: the namespace of these pods and of their claims")
	endpoint := flag.String("http-endpoint", "", "controller: the address at which every request is answered with 200; none if empty")
	file := flag.String("file-name", "", "populate: the file or device to be written")
	contents := flag.String("file-contents", "", "populate: what is written there, and a newline if it ends without one")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the root context is created here
	defer stop()
	var err error
	switch *mode {
	case "controller":
		err = control(ctx, *namespace, *image, *endpoint)
	case "populate":
		err = populate(*file, *contents)
	default:
		err = fmt.Errorf("--mode: is %q; must be controller or populate", *mode)
	}
	if err != nil {
		slog.Error("the populator failed", "error", err)
		os.Exit(1) //nolint:gocritic // there is nothing left to stop
	}
}

// populate writes the file that a Hello describes.
func populate(file, contents string) error {
	if file == "" || contents == "" {
		return errors.New("--file-name and --file-contents are needed")
	}
	if !strings.HasSuffix(contents, "\n") {
		contents += "\n"
	}
	return os.WriteFile(file, []byte(contents), 0o644) //nolint:gosec // the user of the volume must be able to read it
}

// control populates volumes until the context ends.
func control(ctx context.Context, namespace, image, endpoint string) error {
	if namespace == "" || image == "" {
		return errors.New("--namespace and --image-name are needed")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("configuring: %w", err)
	}
	if endpoint != "" {
		go serve(endpoint)
	}
	return newController(client, objects, namespace, image).run(ctx)
}

// serve answers HTTP requests with 200, which shows that the program is alive.
func serve(address string) {
	alive := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if err := http.ListenAndServe(address, alive); err != nil { //nolint:gosec // a test cluster has no hostile clients
		slog.Error("cannot serve", "error", err)
	}
}
