package observability

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// NewRecorder returns a recorder of events in the name of a component, which works until the
// context ends.
//
// It writes core/v1 events and not events.k8s.io ones, because client-go's recorder of the latter treats events of
// one reason as the same, regardless of their note (events.getKey in client-go v0.36): the second cause of a
// ProvisioningFailed would never be shown.
func NewRecorder(ctx context.Context, cfg *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, component string) (record.EventRecorder, error) {
	client, err := typedcorev1.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client for events: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events("")})
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component}), nil
}
