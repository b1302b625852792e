package integration

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestControllerToken_WritesConfigMapsOfClaimsOnly(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	uid := uuid.NewUUID()
	of := func(name string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
		m := &corev1.ConfigMap{ObjectMeta: ownedByClaim("default", name, uid), Data: map[string]string{"BUCKET_NAME": "b"}}
		change(m)
		return m
	}
	same := func(*corev1.ConfigMap) {}
	owned := func(apiVersion, kind, name string) func(*corev1.ConfigMap) {
		return func(m *corev1.ConfigMap) {
			m.OwnerReferences[0].APIVersion, m.OwnerReferences[0].Kind, m.OwnerReferences[0].Name = apiVersion, kind, name
		}
	}
	ours := mustCreateHeld(t, c, of("policed", same))
	foreign := mustCreateHeld(t, c, of("policed-foreign", func(m *corev1.ConfigMap) { m.Labels, m.OwnerReferences = nil, nil }))
	another := mustCreateHeld(t, c, of("policed-another", func(m *corev1.ConfigMap) { m.Labels[pavv1.AccessLabel] = string(uuid.NewUUID()) }))
	system := of("extension-apiserver-authentication", func(m *corev1.ConfigMap) { m.Namespace = "kube-system" })
	try(t, stolenController(t, c), []attempt{
		{"it creates that of a claim", creating(of("new", same)), ""},
		{"it creates one without a label", creating(of("new", func(m *corev1.ConfigMap) { m.Labels = nil })), claimsOnly},
		{"it creates one of another UID", creating(of("new", func(m *corev1.ConfigMap) { m.Labels[pavv1.AccessLabel] = string(uuid.NewUUID()) })), claimsOnly},
		{"it creates one of a claim of another name", creating(of("new", owned("objectbucket.io/v1alpha1", "ObjectBucketClaim", "other"))), claimsOnly},
		{"it creates that of a BucketAccess", creating(of("new", owned("objectstorage.k8s.io/v1alpha1", "BucketAccess", "new"))), claimsOnly},
		{"it creates one with a label of another program", creating(of("new", func(m *corev1.ConfigMap) { m.Labels["grafana_dashboard"] = "1" })), noKeysOfOthers},
		{"it creates one with an annotation", creating(of("new", func(m *corev1.ConfigMap) { m.Annotations = map[string]string{"a": "b"} })), noKeysOfOthers},
		{"it replaces its own", updating(ours), ""},
		{"it replaces one without the label", updating(of(foreign.Name, same)), nameTaken},
		{"it replaces another claim's", updating(of(another.Name, same)), nameTaken},
		{"it replaces one of the cluster", updating(system), nameTaken},
		{"it deletes its own", deleting(ours), ""},
		{"it deletes one without the label", deleting(foreign), nameTaken},
		{"it deletes one of the cluster", deleting(system), nameTaken},
		{"it reads one", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKeyFromObject(ours), &corev1.ConfigMap{})
		}, notInTheRole},
		{"it patches one", patching(ours, relabel), notInTheRole},
		{"it deletes all", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"))
		}, notInTheRole},
	})
}

func TestControllerToken_DoesNotChangeWhatClaimsAskFor(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	installBucketKinds(t, c)
	const asks, only, another = "what a claim or an access asks for", "may change the finalizers of a claim or an access", "give a claim another bucket"
	of := func(plural, name string, spec map[string]any) *unstructured.Unstructured {
		return mustCreateHeld(t, c, bucketObject(plural, "default", name, map[string]any{"spec": spec}))
	}
	claim := of("objectbucketclaims", "policed", map[string]any{"storageClassName": "s", "generateBucketName": "g", "additionalConfig": map[string]any{"maxSize": "1Gi"}})
	named := of("objectbucketclaims", "policed-named", map[string]any{"storageClassName": "s", "bucketName": "mine", "objectBucketName": "obc-default-mine"})
	cosi := of("bucketclaims", "policed", map[string]any{"bucketClassName": "s", "protocols": []any{"S3"}})
	bound := of("bucketclaims", "policed-bound", nil)
	if err := patching(bound, `{"status": {"bucketName": "b", "boundBucketName": "b"}}`, "status")(t.Context(), c.Admin); err != nil {
		t.Fatal(err)
	}
	access := of("bucketaccesses", "policed", map[string]any{"bucketClaimName": "policed", "credentialsSecretName": "s"})
	attempts := []attempt{
		{"it names the bucket", patching(claim, `{"spec": {"bucketName": "b", "objectBucketName": "o"}}`), ""},
		{"it names another bucket", patching(named, `{"spec": {"bucketName": "b"}}`), asks},
		{"it names another ObjectBucket", patching(named, `{"spec": {"objectBucketName": "obc-default-other"}}`), asks},
		{"it names the bucket of a COSI claim", patching(cosi, `{"status": {"bucketName": "b"}}`, "status"), ""},
		{"it names another bucket of a COSI claim", patching(bound, `{"status": {"bucketName": "other"}}`, "status"), another},
		{"it names another bucket of a COSI claim of v1alpha2", patching(bound, `{"status": {"boundBucketName": null}}`, "status"), another},
		{"it changes the class", patching(claim, `{"spec": {"storageClassName": "other"}}`), asks},
		{"it changes the size", patching(claim, `{"spec": {"additionalConfig": {"maxSize": "1Ti"}}}`), asks},
		{"it labels a claim as others do", patching(claim, `{"metadata": {"labels": {"bucket-provisioner": "policed"}}}`), ""},
		{"it changes a COSI claim", patching(cosi, `{"spec": {"existingBucketName": "other"}}`), asks},
		{"it annotates a COSI claim as upstream does", patching(cosi, `{"metadata": {"annotations": {"objectstorage.k8s.io/has-bucketaccess-references": ""}}}`), ""},
		{"it has credentials of another bucket written", patching(access, `{"spec": {"bucketClaimName": "other"}}`), asks},
		{"it has credentials written elsewhere", patching(access, `{"spec": {"credentialsSecretName": "other"}}`), asks},
		{"it creates a claim", creating(bucketObject("objectbucketclaims", "default", "new", nil)), notInTheRole},
		{"it creates an access", creating(bucketObject("bucketaccesses", "default", "new", nil)), notInTheRole},
		{"it changes a class", patching(bucketObject("bucketclasses", "", "c", nil), relabel), notInTheRole},
	}
	for _, object := range []*unstructured.Unstructured{claim, cosi, access} {
		kind := object.GetKind()
		attempts = append(attempts,
			attempt{kind + ": its state", patching(object, `{"status": {"phase": "Bound"}}`, "status"), ""},
			attempt{kind + ": its finalizers", patching(object, `{"metadata": {"finalizers": ["objectbucket.io/finalizer"]}}`), ""},
			attempt{kind + ": a label", patching(object, relabel), only},
			attempt{kind + ": an annotation", patching(object, `{"metadata": {"annotations": {"a": "b"}}}`), only},
			attempt{kind + ": its owner", patching(object, adopted), only},
			attempt{kind + ": its existence", deleting(object), notInTheRole},
		)
	}
	try(t, stolenController(t, c), attempts)
}

func TestControllerToken_DeletesItsOwnBucketsOnly(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	installBucketKinds(t, c)
	const only, bindsOnly, once, driver = "that it created with the label", "may bind a Bucket, and", "may not bind a Bucket to another claim", "is the name of its driver"
	labelled := func(object *unstructured.Unstructured, provisioner string) *unstructured.Unstructured {
		object.SetLabels(map[string]string{pavv1.ProvisionerLabel: provisioner})
		return object
	}
	bucket := func(name string) *unstructured.Unstructured {
		return bucketObject("buckets", "", name, map[string]any{"spec": map[string]any{"driverName": "policed", "deletionPolicy": "Retain", "bucketClaim": map[string]any{}}})
	}
	objectBucket := func(name string) *unstructured.Unstructured {
		return bucketObject("objectbuckets", "", name, map[string]any{"spec": map[string]any{"storageClassName": "s"}})
	}
	ours, foreign := mustCreateHeld(t, c, labelled(bucket("policed"), "policed")), mustCreateHeld(t, c, bucket("policed-foreign"))
	own, theirs := mustCreateHeld(t, c, labelled(objectBucket("policed"), "policed")), mustCreateHeld(t, c, objectBucket("policed-foreign"))
	bound := bucket("policed-bound")
	bound.Object["spec"] = map[string]any{"bucketClaim": map[string]any{"name": "c", "namespace": "default"}, "bucketClaimRef": map[string]any{"uid": "u"}}
	mustCreateHeld(t, c, bound)
	if err := patching(bound, `{"status": {"bucketID": "b"}}`, "status")(t.Context(), c.Admin); err != nil {
		t.Fatal(err)
	}
	takes := `{"metadata": {"labels": {"` + pavv1.ProvisionerLabel + `": "policed"}}}`
	attempts := []attempt{
		{"it creates a Bucket", creating(labelled(bucket("new"), "policed")), ""},
		{"it creates a Bucket of another driver", creating(labelled(bucket("new"), "other")), driver},
		{"it gives its Bucket to another driver", patching(ours, `{"spec": {"driverName": "other"}}`), driver},
		{"it gives a foreign Bucket to another driver", patching(foreign, `{"spec": {"driverName": "other"}}`), bindsOnly},
		{"it binds a Bucket that an administrator made", patching(foreign, `{"spec": {"bucketClaim": {"name": "c"}}}`), ""},
		{"it binds one for good", patching(bound, `{"spec": {"bucketClaim": {"uid": "u"}}}`), ""},
		{"it binds one to another claim", patching(bound, `{"spec": {"bucketClaim": {"name": "other"}}}`), once},
		{"it binds one to a claim of another namespace", patching(bound, `{"spec": {"bucketClaim": {"namespace": "other"}}}`), once},
		{"it binds one to another claim of that name", patching(bound, `{"spec": {"bucketClaimRef": {"uid": "other"}}}`), once},
		{"it binds one to no claim", patching(bound, `{"spec": {"bucketClaim": null}}`), once},
		{"it says that one is ready", patching(bound, `{"status": {"bucketReady": true}}`, "status"), ""},
		{"it says that one is another bucket", patching(bound, `{"status": {"bucketID": "other"}}`, "status"), once},
		{"it writes the state of an ObjectBucket that is not PaV's", patching(theirs, `{"status": {"phase": "Bound"}}`, "status"), only},
		{"it writes an ObjectBucket that is not PaV's", patching(theirs, `{"spec": {"reclaimPolicy": "Retain"}}`), only},
		{"it writes its own ObjectBucket", patching(own, `{"spec": {"reclaimPolicy": "Retain"}}`), ""},
	}
	for _, object := range []*unstructured.Unstructured{ours, foreign} {
		attempts = append(attempts,
			attempt{object.GetName() + ": its state", patching(object, `{"status": {"bucketReady": true}}`, "status"), ""},
			attempt{object.GetName() + ": the policy", patching(object, `{"spec": {"deletionPolicy": "Delete"}}`), bindsOnly},
			attempt{object.GetName() + ": the bucket", patching(object, `{"spec": {"existingBucketID": "other"}}`), bindsOnly},
		)
	}
	for _, pair := range [][2]*unstructured.Unstructured{{ours, foreign}, {own, theirs}} {
		kind, without := pair[0].GetKind(), pair[1].DeepCopy()
		without.SetName("new")
		attempts = append(attempts,
			attempt{kind + ": it creates one without the label", creating(without), only},
			attempt{kind + ": it takes the label", patching(pair[0], `{"metadata": {"labels": null}}`), only},
			attempt{kind + ": it takes another's for its own", patching(pair[1], takes), only},
			attempt{kind + ": it deletes its own", deleting(pair[0]), ""},
			attempt{kind + ": it deletes another's", deleting(pair[1]), only},
		)
	}
	try(t, stolenController(t, c), attempts)
}

// Node agents seal what a pod leaves, and need no Secrets.
func TestNodeAgentToken_HasNoRightsOnSecrets(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	account := client.ObjectKey{Namespace: namespace, Name: "node-agent"}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	for _, in := range []string{"", "default", namespace, "pav-pods", credentialsNamespace} {
		for _, resource := range []string{"secrets", "configmaps"} {
			for _, verb := range verbs {
				for _, name := range []string{"", "seal-1"} {
					if allowed, why := mayDo(t.Context(), c, account, &authorizationv1.ResourceAttributes{Namespace: in, Resource: resource, Verb: verb, Name: name}); allowed {
						t.Errorf("it may %s %s %q in %q: %s", verb, resource, name, in, why)
					}
				}
			}
		}
	}
	for resource, group := range map[string]string{
		"pavbuckets": pavv1.Group, "pavbucketaccesses": pavv1.Group, "objectbucketclaims": "objectbucket.io", "bucketaccesses": "objectstorage.k8s.io",
	} {
		for _, subresource := range []string{"", "status", "finalizers"} {
			for _, verb := range verbs {
				what := &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Verb: verb}
				want := group == pavv1.Group && subresource == "" && verb == "get"
				if allowed, why := mayDo(t.Context(), c, account, what); allowed != want {
					t.Errorf("it may %s %s/%s: %t, want %t: %s", verb, resource, subresource, allowed, want, why)
				}
			}
		}
	}
	secret := secretOf("default", "policed", uuid.NewUUID(), unchanged)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentialsNamespace, Name: "seal-1"}}
	for _, object := range []client.Object{secret, key} {
		try(t, nodeAgent(t, c, fakeNode), []attempt{
			{"it reads " + object.GetName(), func(ctx context.Context, c client.Client) error {
				return c.Get(ctx, client.ObjectKeyFromObject(object), copied(object))
			}, notInTheRole},
			{"it lists those beside " + object.GetName(), func(ctx context.Context, c client.Client) error {
				return c.List(ctx, &corev1.SecretList{}, client.InNamespace(object.GetNamespace()))
			}, notInTheRole},
			{"it creates " + object.GetName(), creating(object), notInTheRole},
			{"it replaces " + object.GetName(), updating(object), notInTheRole},
			{"it patches " + object.GetName(), patching(object, relabel), notInTheRole},
			{"it deletes " + object.GetName(), deleting(object), notInTheRole},
		})
	}
}

// Tenants ask for buckets where an administrator lets them, and never see records.
func TestTenant_AsksForBucketsWithTheRightOnly(t *testing.T) {
	c := start(t)
	enableBuckets(t, c)
	installBucketKinds(t, c)
	tenant := tenantOf(t, c, "default")
	asks := func(denied string) (attempts []attempt) {
		for _, plural := range []string{"objectbucketclaims", "bucketclaims", "bucketaccesses"} {
			attempts = append(attempts, attempt{plural, creating(bucketObject(plural, "default", "mine", nil)), denied})
		}
		return attempts
	}
	records := []attempt{
		{"a key is read", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: credentialsNamespace, Name: "seal-1"}, &corev1.Secret{})
		}, notInTheRole},
	}
	for _, plural := range []string{"objectbuckets", "buckets", "bucketclasses", "bucketaccessclasses"} {
		records = append(records, attempt{plural, creating(bucketObject(plural, "", "mine", nil)), notInTheRole})
	}
	for _, record := range []client.Object{&pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, &pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a"}}} {
		records = append(records, attempt{"a record is read", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKeyFromObject(record), copied(record))
		}, notInTheRole})
	}
	try(t, tenant, append(asks(notInTheRole), records...))
	bind(t, c, "default", "pav-edit-buckets")
	try(t, tenant, append(asks(""), records...))
}
