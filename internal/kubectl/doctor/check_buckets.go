package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

// bucketAPIs are the CustomResourceDefinitions of claims of buckets, and the versions of them that PaV serves.
var bucketAPIs = map[string][]string{
	"objectbucketclaims.objectbucket.io": {"v1alpha1"},
	"bucketclaims.objectstorage.k8s.io":  {"v1alpha1", "v1alpha2"},
	"buckets.cosi.io":                    {"v1alpha1"},
}

// checkBuckets checks whether buckets are enabled where they are needed, and counts the buckets and accesses that fail.
func checkBuckets(f *Facts) (rows []Row, well string) {
	if rows = f.unknown(listBuckets, listAccesses, listProvisioner, getBucketRights, getDefinitions, listNamespaces); rows != nil {
		return rows, ""
	}
	rows = append(checkEnabled(f), checkRecords(f)...)
	well = fmt.Sprintf("none of %s and %s fails", counted(len(f.Buckets), "bucket"), plural(len(f.Accesses), "access", "accesses"))
	if !f.BucketRights {
		well = "they are not enabled, and not needed"
	}
	return rows, well
}

// checkEnabled returns what is missing of what buckets need.
func checkEnabled(f *Facts) (rows []Row) {
	var need []string
	for i := range f.Provisioners {
		if p := &f.Provisioners[i]; p.Spec.HasBuckets() && p.DeletionTimestamp == nil {
			need = append(need, p.Name)
		}
	}
	enable := step("enable buckets, or set buckets.enabled if Helm installed PaV", "kubectl create -f deployment-buckets.yaml")
	switch records := len(f.Buckets) + len(f.Accesses); {
	case !f.BucketRights && len(need) > 0:
		rows = append(rows, problem(fmt.Sprintf("%s, and buckets are not enabled: %s", plural(len(need), "PavProvisioner has buckets", "PavProvisioners have buckets"), listed(need)), enable))
	case !f.BucketRights && records > 0:
		rows = append(rows, problem(fmt.Sprintf("%s left, and buckets are not enabled: nothing is granted, revoked or deleted", plural(records, "record of buckets is", "records of buckets are")), enable))
	case f.BucketRights && !f.Credentials:
		rows = append(rows, problem(fmt.Sprintf("namespace %s does not exist: no access can be granted", pavv1.CredentialsNamespace), enable))
	}
	if !f.BucketRights || len(need) == 0 {
		return rows
	}
	for _, name := range slices.Sorted(maps.Keys(f.BucketAPIs)) {
		if !f.BucketAPIs[name] {
			rows = append(rows, problem(fmt.Sprintf("CustomResourceDefinition %s serves none of the versions that PaV serves: %s", name, strings.Join(bucketAPIs[name], ", ")),
				step("see which version it serves", "kubectl get crd %s -o jsonpath={.spec.versions[*].name}", name)))
		}
	}
	if len(f.BucketAPIs) == 0 {
		rows = append(rows, problem("the cluster has neither ObjectBucketClaims nor BucketClaims, so that nobody can claim a bucket",
			step("create the definitions of the first", "kubectl create -f deploy/foreign/objectbucket"), step("or those of COSI", "kubectl create -f deploy/foreign/cosi")))
	}
	return rows
}

// checkRecords returns the buckets and accesses that fail. What cannot be deleted or revoked is left over.
func checkRecords(f *Facts) (rows []Row) {
	found := map[string][]string{}
	for i := range f.Buckets {
		if b := &f.Buckets[i]; b.Status.Failure != nil && b.Status.Phase == pavv1.BucketReady {
			found["updated"] = append(found["updated"], b.Name)
		} else if b.Status.Failure != nil && b.Status.Phase == pavv1.BucketPending {
			found["created"] = append(found["created"], b.Name)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(found)) {
		rows = append(rows, problem(fmt.Sprintf("%s %s: %s", plural(len(found[what]), "bucket cannot be", "buckets cannot be"), what, listed(found[what])), see("kubectl pav describe pavbucket/"+slices.Min(found[what]), len(found[what]))))
	}
	var refused, stale, ended []string
	for i := range f.Accesses {
		s, name := &f.Accesses[i].Status, f.Accesses[i].Name
		switch {
		case f.Accesses[i].Spec.Released: // nobody needs it
		case s.Current == nil && s.Failure != nil:
			refused = append(refused, name)
		case s.Current != nil && s.Current.ExpiresAt != nil && !f.Now.Before(s.Current.ExpiresAt.Time):
			ended = append(ended, name)
		case s.Failure != nil:
			stale = append(stale, name)
		}
	}
	if len(refused) > 0 {
		rows = append(rows, problem(fmt.Sprintf("%s granted: %s", plural(len(refused), "access cannot be", "accesses cannot be"), listed(refused)), see("kubectl pav describe pavbucketaccess/"+slices.Min(refused), len(refused))))
	}
	if len(stale) > 0 {
		rows = append(rows, problem(fmt.Sprintf("the account of %s replaced: %s", plural(len(stale), "access cannot be", "accesses cannot be"), listed(stale)), see("kubectl pav describe pavbucketaccess/"+slices.Min(stale), len(stale))))
	}
	if len(ended) > 0 {
		rows = append(rows, problem(fmt.Sprintf("the credentials of %s ended: %s", plural(len(ended), "access have", "accesses have"), listed(ended)), see("kubectl pav describe pavbucketaccess/"+slices.Min(ended), len(ended))))
	}
	return rows
}

// see is the step that explains what is wrong with the first of some records, by a command.
func see(command string, records int) status.Step {
	first := status.Step{Text: "see what to do", Command: command}
	if records > 1 {
		first.Text += " about the first"
	}
	return first
}

// waitsForLong reports whether a condition is false, and has been for long.
func waitsForLong(f *Facts, conditions []metav1.Condition, kind string) bool {
	waiting := meta.FindStatusCondition(conditions, kind)
	return waiting != nil && waiting.Status == metav1.ConditionFalse && f.Now.Sub(waiting.LastTransitionTime.Time) > stuckTime
}

// stuckBuckets returns the PavBuckets that cannot be deleted.
func stuckBuckets(f *Facts) []Row {
	var stuck []string
	for i := range f.Buckets {
		b := &f.Buckets[i]
		if b.Status.DeletionFailure != nil || b.Status.Phase != pavv1.BucketRetained && waitsForLong(f, b.Status.Conditions, pavv1.BucketDeleted) {
			stuck = append(stuck, b.Name)
		}
	}
	return stuckRecords("the bucket of %s not deleted: %s", "PavBucket", "PavBuckets", stuck, func(name string) (why, again string) {
		return "kubectl pav describe pavbucket/" + name, "kubectl pav retry pavbucket/" + name
	})
}

// stuckAccesses returns the PavBucketAccesses with accounts that cannot be revoked.
func stuckAccesses(f *Facts) []Row {
	var stuck []string
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Status.RevocationFailure != nil || a.Spec.Released && waitsForLong(f, a.Status.Conditions, pavv1.AccessRevokedCondition) {
			stuck = append(stuck, a.Name)
		}
	}
	return stuckRecords("an account of %s not revoked: %s", "PavBucketAccess", "PavBucketAccesses", stuck, func(name string) (why, again string) {
		return "kubectl pav describe pavbucketaccess/" + name, "kubectl pav retry pavbucketaccess/" + name
	})
}

// stuckRecords tells of records that cannot go. Commands returns those that say why, and that begin the next attempt.
func stuckRecords(message, one, many string, stuck []string, commands func(name string) (why, again string)) []Row {
	if len(stuck) == 0 {
		return nil
	}
	why, again := commands(stuck[0])
	return []Row{problem(fmt.Sprintf(message, plural(len(stuck), one+" is", many+" is"), listed(stuck)),
		status.Step{Text: "see why", Command: why},
		status.Step{Text: "then start the next attempt now", Command: again})}
}
