package claim

import (
	"fmt"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// source is the snapshot or the volume that a volume is to be created from.
type source struct {
	podplan.ClaimSource

	// granted says that a ReferenceGrant in the namespace of the object lets the claim use it; only for another namespace.
	granted bool
}

func refuseDataSource(o snapshot) string {
	ref := protocol.Source(o.claim)
	if ref == nil || o.namesBucket() {
		return ""
	}
	if message := podplan.CheckSourceKind(o.provisioner, o.claim); message != "" {
		return message
	}
	if namespace := protocol.SourceNamespace(o.claim, ref); namespace != o.claim.Namespace {
		if message := o.refuseNamespace(namespace); message != "" {
			return message
		}
	}
	if o.source == nil {
		return "" // it is looked up before anything is written
	}
	if problem := o.source.Problem(o.provisioner.Name, o.claim); problem != nil {
		return fmt.Sprintf("spec.dataSourceRef: %s %s", podplan.SourceName(o.claim), problem.Text)
	}
	return ""
}

// refuseNamespace returns why the claim may not use sources of another namespace, or "".
func (o snapshot) refuseNamespace(namespace string) string {
	switch {
	case !o.crossNamespace:
		return "spec.dataSourceRef.namespace: sources in other namespaces are not allowed; to allow them, the administrator sets the option --cross-namespace-sources of PaV's controller agent"
	case o.source != nil && !o.source.granted:
		return fmt.Sprintf("spec.dataSourceRef.namespace: no ReferenceGrant in namespace %q lets claims of namespace %q use the source", namespace, o.claim.Namespace)
	default:
		return ""
	}
}

// recorded returns the source as it is recorded in the PavVolume; nil if the claim names none.
func (o snapshot) recorded() (*pavv1.DataSource, error) {
	if protocol.Source(o.claim) == nil || o.namesBucket() {
		return nil, nil
	}
	return o.source.Recorded(o.claim)
}
