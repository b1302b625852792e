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

// normalEvents is how many Normal events are remembered, about 1 KiB each. Most happen once to an object: a claim that is bound has two. One
// that is repeated after so many others becomes a new Event object, and is not counted in the former one.
const normalEvents = 1024

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
	start := func(options record.CorrelatorOptions) record.EventRecorder {
		broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(options))
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events("")})
		return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component})
	}
	return byType{
		normal:  start(record.CorrelatorOptions{LRUCacheSize: normalEvents}),
		warning: start(record.CorrelatorOptions{}),
	}, nil
}

// byType records Normal events apart from all others: many claims that are bound at once neither make it forget which warnings it has
// recorded, nor take their place in the queue.
type byType struct{ normal, warning record.EventRecorder }

func (r byType) of(eventType string) record.EventRecorder {
	if eventType == corev1.EventTypeNormal {
		return r.normal
	}
	return r.warning
}

// Event implements record.EventRecorder.
func (r byType) Event(object runtime.Object, eventType, reason, message string) {
	r.of(eventType).Event(object, eventType, reason, message)
}

// Eventf implements record.EventRecorder.
func (r byType) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	r.of(eventType).Eventf(object, eventType, reason, format, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r byType) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any) {
	r.of(eventType).AnnotatedEventf(object, annotations, eventType, reason, format, args...)
}
