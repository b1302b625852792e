package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// holdings are what a PavProvisioner has to do with.
type holdings struct {
	volumes   []VolumeRow
	snapshots []pavv1.PavSnapshot
	buckets   []pavv1.PavBucket
	accesses  []pavv1.PavBucketAccess
}

// reportOnProvisioner returns the report on a PavProvisioner and what it serves.
func reportOnProvisioner(ctx context.Context, cluster *cli.Cluster, name string) (*Report, error) {
	reader := cluster.Objects
	p := &pavv1.PavProvisioner{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, p); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no PavProvisioner %q", name)
	} else if err != nil {
		return nil, fmt.Errorf("getting the PavProvisioner: %w", err)
	}
	s, g := holdings{}, &gatherer{reader, &Facts{}}
	var err error
	if s.volumes, err = readVolumes(ctx, reader, name); err != nil {
		return nil, err
	}
	if s.snapshots, err = g.records(ctx, func(record *pavv1.PavSnapshot) bool { return record.Spec.Provisioner == name }); err != nil {
		return nil, err
	}
	if s.buckets, err = g.buckets(ctx, func(record *pavv1.PavBucket) bool { return record.Spec.Provisioner == name }); err != nil {
		return nil, err
	}
	if s.accesses, err = g.accesses(ctx, func(record *pavv1.PavBucketAccess) bool { return record.Spec.Provisioner == name }); err != nil {
		return nil, err
	}
	namespace, err := agent.Namespace(ctx, reader)
	if err != nil {
		return nil, err
	}
	return provisionerReport(p, s, namespace, cluster.Now()), nil
}

// provisionerReport is the report on a PavProvisioner and what it serves, where the agents are in a namespace. It is a pure function.
func provisionerReport(p *pavv1.PavProvisioner, s holdings, agents string, now time.Time) *Report {
	r := &Report{Provisioner: p.Name, Timeline: []Entry{}, Findings: diagnoseProvisioner(p, agents, now)}
	r.Findings = append(r.Findings, failingVolumes(s.volumes)...)
	r.Findings = append(r.Findings, failingSnapshots(s.snapshots)...)
	r.Findings = append(r.Findings, failingBuckets(s.buckets, s.accesses)...)
	if len(r.Findings) == 0 {
		r.Findings = append(r.Findings, Finding{Code: "Healthy", State: Healthy, Summary: "the provisioner is ready, and has " + s.counted()})
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return severity[b.State] - severity[a.State] })
	r.State = r.Findings[0].State
	modes := make([]string, 0, len(p.Spec.ProvisioningModes))
	for _, mode := range p.Spec.ProvisioningModes {
		modes = append(modes, string(mode))
	}
	r.Details = []Detail{{Name: "Modes", Value: strings.Join(modes, ", ")}, {Name: "Volumes", Value: counted(len(s.volumes), "volume")}}
	if p.Spec.SnapshotCreation != nil || len(s.snapshots) > 0 {
		r.Details = append(r.Details, Detail{Name: "Snapshots", Value: counted(len(s.snapshots), "snapshot")})
	}
	if p.Spec.HasBuckets() || len(s.buckets) > 0 {
		r.Details = append(r.Details, Detail{Name: "Buckets", Value: counted(len(s.buckets), "bucket") + ", with " + accesses(len(s.accesses))})
	}
	if nodes := p.Status.Nodes; nodes != nil {
		r.Details = append(r.Details, Detail{Name: "Nodes", Value: fmt.Sprintf("its driver is registered on %d of %d", nodes.Registered, nodes.Wanted)})
	}
	if stages := p.Status.Stages; stages != nil {
		r.Details = append(r.Details, Detail{Name: "Stages", Value: counted(int(stages.Total), "stage")})
	}
	return r
}

// counted returns how many volumes and buckets there are.
func (s holdings) counted() string {
	if len(s.buckets) == 0 {
		return counted(len(s.volumes), "volume")
	}
	return counted(len(s.volumes), "volume") + " and " + counted(len(s.buckets), "bucket")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// diagnoseProvisioner returns the findings about the object itself, where the agents are in a namespace.
func diagnoseProvisioner(p *pavv1.PavProvisioner, agents string, now time.Time) (found []Finding) {
	is := func(kind string, status metav1.ConditionStatus) *metav1.Condition {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil && c.Status == status {
			return c
		}
		return nil
	}
	switch accepted, deleting := is(pavv1.ProvisionerAccepted, metav1.ConditionFalse), is(pavv1.ProvisionerDeleting, metav1.ConditionTrue); {
	case accepted != nil:
		found = append(found, Finding{Code: "ProvisionerNotAccepted", State: Failing, Summary: "the definition cannot be used", Reason: accepted.Message, Next: []Step{seeProvisioner(p.Name)}})
	case p.DeletionTimestamp != nil && deleting != nil:
		found = append(found, Finding{Code: "ProvisionerDeleting", State: Waiting, Summary: "the provisioner is being deleted, and provisions no more volumes", Reason: deleting.Message,
			Next: []Step{{Text: "see its volumes", Command: "kubectl pav get " + p.Name}}})
	case p.DeletionTimestamp != nil:
		found = append(found, Finding{Code: "ProvisionerDeleting", State: Working, Summary: "the provisioner is being deleted, and provisions no more volumes"})
	case is(pavv1.ProvisionerReady, metav1.ConditionFalse) != nil:
		c := is(pavv1.ProvisionerReady, metav1.ConditionFalse)
		found = append(found, Finding{Code: "ProvisionerNotReady", State: Failing, Summary: "the provisioner has no CSIDriver", Reason: c.Message,
			Next: []Step{{Text: "see the object in its place", Command: "kubectl describe csidriver " + p.Name}}})
	case p.Status.Nodes != nil && p.Status.Nodes.Registered < p.Status.Nodes.Wanted:
		found = append(found, Finding{Code: "DriverNotRegistered", State: Waiting, Summary: fmt.Sprintf("the driver is registered on %d of %d nodes", p.Status.Nodes.Registered, p.Status.Nodes.Wanted),
			Next: []Step{{Text: "see the node agents", Command: "kubectl -n " + agents + " get pods -o wide -l app.kubernetes.io/component=node-agent"}}})
	case len(p.Status.Conditions) == 0 && now.Sub(p.CreationTimestamp.Time) > silentAfter:
		found = append(found, silent(agents, "PaV's controller agent has not checked the definition for "+cli.Duration(now.Sub(p.CreationTimestamp.Time))+", and may not be running"))
	case len(p.Status.Conditions) == 0:
		found = append(found, Finding{Code: "ControllerSilent", State: Working, Summary: "PaV is about to check the definition"})
	}
	return found
}

// most is how many volumes, snapshots, buckets and accesses that fail are named.
const most = 5

// failingVolumes returns findings about the first volumes that fail.
func failingVolumes(volumes []VolumeRow) (found []Finding) {
	more := 0
	for i := range volumes {
		v := &volumes[i]
		at := slices.IndexFunc(v.Nodes, func(n VolumeNode) bool { return n.Failing() })
		if v.Failure == "" && at < 0 {
			continue
		}
		if len(found) == most {
			more++
			continue
		}
		object := Ref{Kind: PV, Name: v.PV}
		if v.Claim != "" {
			object = Ref{Kind: Claim, Namespace: v.Namespace, Name: v.Claim}
		}
		finding := Finding{Code: "VolumeFailing", State: Failing, Summary: fmt.Sprintf("volume %s fails", v.PV), Reason: Brief(v.Failure),
			Next: []Step{{Text: "see what is wrong with it", Command: "kubectl pav describe " + object.String()}}}
		if at >= 0 {
			finding.Summary += " on node " + v.Nodes[at].Name
		}
		found = append(found, finding)
	}
	if more > 0 {
		found = append(found, Finding{Code: "VolumeFailing", State: Failing, Summary: counted(more, "more volume") + " fail"})
	}
	return found
}
