package cosi0

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

func TestDecide_ABucketWithoutRecords(t *testing.T) {
	const refuse, refused = bucketapi.StepRefuse, protocol.BucketClaimRefused
	labelled := func(label string) edit {
		return func(o *observation) { o.object.Labels = map[string]string{cosiv0.ProvisionerLabel: label} }
	}
	secret := func(name string) edit {
		return func(o *observation) { o.object.Spec.SecretName = name }
	}
	check(t, map[string]decision{
		"it asks for a bucket":               {o: asked(), want: stepRecord},
		"it asks for any name":               {o: asked(func(o *observation) { o.object.Spec.BucketPrefix = "" }), want: stepRecord},
		"it has no class":                    {o: asked(classGone), want: rule.Done},
		"its class has no provisioner":       {o: asked(provisionerGone, class(func(c *cosiv0.BucketClass) { c.Provisioner = "" })), want: rule.Done},
		"its class is another provisioner's": {o: asked(provisionerGone), want: rule.Done},
		"it was labelled before":             {o: asked(labelled("store")), want: stepRecord},
		"it was another provisioner's":       {o: asked(labelled("elsewhere")), want: refuse, reason: refused, message: "belongs to the provisioner"},
		"the provisioner has no buckets": {o: asked(func(o *observation) {
			o.provisioner.Spec.BucketCreation, o.provisioner.Spec.BucketAccessGrant = nil, nil
		}), want: refuse, reason: refused, message: "no buckets"},
		"the provisioner is being deleted":       {o: asked(func(o *observation) { o.provisioner.DeletionTimestamp = new(metav1.NewTime(noon)) }), want: refuse, reason: refused, message: "being deleted"},
		"its class has an unknown policy":        {o: asked(class(func(c *cosiv0.BucketClass) { c.ReleasePolicy = "Recycle" })), want: refuse, reason: refused, message: "releasePolicy"},
		"its class has no policy":                {o: asked(class(func(c *cosiv0.BucketClass) { c.ReleasePolicy = "" })), want: stepRecord},
		"its class has an unknown mode":          {o: asked(class(func(c *cosiv0.BucketClass) { c.AccessMode = "x" })), want: refuse, reason: refused, message: "accessMode"},
		"its class has a mode":                   {o: asked(class(func(c *cosiv0.BucketClass) { c.AccessMode = cosiv0.AccessReadOnly })), want: stepRecord},
		"its class lists an unknown protocol":    {o: asked(class(func(c *cosiv0.BucketClass) { c.SupportedProtocols = []string{"swift"} })), want: refuse, reason: refused, message: "none of s3"},
		"its class lists an unknown one, too":    {o: asked(class(func(c *cosiv0.BucketClass) { c.SupportedProtocols = []string{"swift", "S3"} })), want: stepRecord},
		"its class names a bucket":               {o: asked(existing), want: stepRecord},
		"its class names a bucket and a Secret":  {o: asked(static), want: stepRecord},
		"its class names a Secret of a tenant":   {o: asked(static, class(func(c *cosiv0.BucketClass) { c.SecretRef.Namespace = "a" })), want: refuse, reason: refused, message: `namespace "a"`},
		"its class names a Secret and no bucket": {o: asked(static, class(func(c *cosiv0.BucketClass) { c.BucketIdentifier = "" })), want: refuse, reason: refused, message: "no bucketIdentifier"},
		"its class names a Secret to nobody":     {o: asked(static, func(o *observation) { o.provisioner.Spec.BucketAccessGrant.FromSecret = nil }), want: refuse, reason: refused, message: "fromSecret"},
		"nobody grants access to static buckets": {o: asked(static, func(o *observation) { o.provisioner.Spec.BucketAccessGrant = nil }), want: refuse, reason: refused, message: "fromSecret"},
		"it names no Secret":                     {o: asked(secret("")), want: refuse, reason: refused, message: "secretName"},
		"it names a Secret that cannot be":       {o: asked(secret("A_b")), want: refuse, reason: refused, message: "secretName"},
		"its prefix is too long":                 {o: asked(func(o *observation) { o.object.Spec.BucketPrefix = strings.Repeat("x", 2048) }), want: refuse, reason: refused, message: "bytes"},
		"its class has a long name":              {o: asked(class(func(c *cosiv0.BucketClass) { c.Name = strings.Repeat("x", 250) })), want: refuse, reason: refused, message: "characters"},
		"another BucketContent has the name":     {o: asked(taken), want: refuse, reason: refused, message: contentName},
		"it is deleted before anything was done": {o: asked(deleted), want: rule.Done},
		"it is deleted, and was PaV's":           {o: asked(deleted, func(o *observation) { o.object.Finalizers = []string{cosiv0.Finalizer} }), want: stepLetGo},
		"its records and its class were removed": {o: bound(bucketGone, provisionerGone), want: refuse, reason: refused, message: "is gone"},
		"its records were removed by force":      {o: bound(bucketGone, func(o *observation) { o.class = asked().class }), want: stepRecord},
	})
}

func TestDecide_ABucketThatIsWanted(t *testing.T) {
	const refuse, refused = bucketapi.StepRefuse, protocol.BucketClaimRefused
	earlier, later := noon.Add(-time.Minute), noon.Add(time.Minute)
	check(t, map[string]decision{
		"it has one record":                      {o: recorded(revoked), want: stepRecord},
		"it names another Secret that late":      {o: recorded(revoked, func(o *observation) { o.object.Spec.SecretName = "" }), want: refuse, reason: refused, message: "secretName"},
		"it names another Secret too late":       {o: recorded(func(o *observation) { o.object.Spec.SecretName = "" }), want: rule.Done},
		"it does not say that it waits":          {o: recorded(func(o *observation) { o.object.Status.Phase = "" }), want: stepMarkPending},
		"it waits":                               {o: recorded(), want: rule.Done},
		"it does not have the finalizer":         {o: bound(func(o *observation) { o.object.Finalizers = nil }), want: stepHold},
		"it does not have the label":             {o: bound(func(o *observation) { o.object.Labels = nil }), want: stepHold},
		"it waits without the finalizer":         {o: recorded(func(o *observation) { o.object.Finalizers = nil }), want: rule.Done},
		"it waits, and its provisioner is gone":  {o: recorded(provisionerGone), want: rule.Done},
		"it waits for access":                    {o: granted(func(o *observation) { o.access.Status.Current = nil }), want: rule.Done},
		"clients can use the bucket":             {o: granted(), want: stepShow},
		"it shows the bucket":                    {o: bound(), want: rule.Done},
		"it names another class by now":          {o: bound(func(o *observation) { o.object.Spec.BucketClassName = "x" }), want: rule.Done},
		"its account is gone":                    {o: bound(func(o *observation) { o.access.Status.Current = nil }), want: stepMarkPending},
		"its BucketContent is gone":              {o: bound(contentGone), want: stepShow},
		"its BucketContent shows another bucket": {o: bound(func(o *observation) { o.content.Spec.BucketIdentifier = "x" }), want: stepShow},
		"its BucketContent has another phase":    {o: bound(func(o *observation) { o.content.Status.Phase = "" }), want: stepShow},
		"its BucketContent has a message":        {o: bound(func(o *observation) { o.content.Status.Message = "x" }), want: rule.Done},
		"it does not name its BucketContent":     {o: bound(func(o *observation) { o.object.Status.BucketContentName = "" }), want: stepShow},
		"the BucketContent is another's":         {o: granted(taken), want: refuse, reason: refused, message: contentName},
		"an administrator gave its bucket up":    {o: bound(func(o *observation) { o.bucket.Spec.Released = true }), want: refuse, reason: refused, message: "given up"},
		"an administrator gave its access up":    {o: bound(accessReleased), want: refuse, reason: refused, message: "given up"},
		"its record has no class":                {o: recorded(func(o *observation) { o.class = nil }), want: refuse, reason: refused, message: "no copy"},
		"another account is requested":           {o: bound(rotate(earlier)), want: stepRotate},
		"another account is requested for later": {o: bound(rotate(later)), want: rule.Done, after: time.Minute},
	})
}

func TestDecide_ABucketThatIsNotWanted(t *testing.T) {
	check(t, map[string]decision{
		"it is deleted":                            {o: bound(deleted), want: stepReleaseAccess},
		"it is deleted while it waits":             {o: recorded(deleted), want: stepReleaseAccess},
		"it is deleted, and its provisioner is":    {o: bound(deleted, provisionerGone), want: stepReleaseAccess},
		"it is gone":                               {o: bound(gone), want: stepReleaseAccess},
		"its access is being revoked":              {o: bound(deleted, accessReleased), want: rule.Done},
		"nobody has access any more":               {o: bound(deleted, revoked), want: stepReleaseBucket},
		"it is gone, and nobody has access":        {o: bound(gone, revoked), want: stepReleaseBucket},
		"its bucket is being deleted":              {o: bound(deleted, released), want: rule.Done},
		"its bucket is deleted":                    {o: bound(deleted, bucketGone), want: stepLetGo},
		"only its BucketContent says that it is":   {o: bound(deleted, bucketGone, provisionerGone, forgotten), want: stepLetGo},
		"its bucket is deleted, and it is gone":    {o: bound(gone, bucketGone), want: stepDeleteContent},
		"its bucket is retained":                   {o: bound(deleted, retained), want: stepLetGo},
		"its bucket is retained, and it is gone":   {o: bound(gone, retained), want: stepDeleteContent},
		"only its BucketContent says that it was":  {o: bound(gone, bucketGone, provisionerGone, forgotten), want: stepDeleteContent},
		"nothing but it is left":                   {o: bound(deleted, bucketGone, contentGone), want: stepLetGo},
		"its record is retained, and it is left":   {o: bound(deleted, retained, contentGone), want: stepLetGo},
		"nothing is left, and its class is gone":   {o: bound(deleted, bucketGone, contentGone, provisionerGone), want: stepLetGo},
		"its finalizer was removed":                {o: bound(deleted, bucketGone, contentGone, free), want: rule.Done},
		"nothing is left, and nothing says whose":  {o: bound(deleted, bucketGone, contentGone, provisionerGone, forgotten), want: rule.Done},
		"the BucketContent of its name is another": {o: bound(deleted, bucketGone, taken), want: stepLetGo},
		"only the record of its bucket is left":    {o: bound(gone, retained, contentGone), want: rule.Done},
	})
}

func TestNameOf(t *testing.T) {
	for name, test := range map[string]struct {
		o    observation
		want naming
	}{
		"a prefix":                    {asked(), naming{bucket: bucketName}},
		"no prefix":                   {asked(func(o *observation) { o.object.Spec.BucketPrefix = "" }), naming{bucket: string(bucketUID)}},
		"a bucket of the class":       {asked(existing), naming{bucket: "old", existing: "old"}},
		"a prefix that is a whole ID": {asked(func(o *observation) { o.object.Spec.BucketPrefix = "old" }), naming{bucket: "old" + string(bucketUID)}},
	} {
		if got := nameOf(test.o.object, test.o.class); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestProtocolOf(t *testing.T) {
	lists := func(protocols ...string) edit {
		return class(func(c *cosiv0.BucketClass) { c.SupportedProtocols = protocols })
	}
	for name, test := range map[string]struct {
		o    observation
		want pavv1.BucketProtocol
	}{
		"neither says anything":                 {asked(), pavv1.ProtocolS3},
		"the provisioner supports one":          {asked(supports(pavv1.ProtocolGCS)), pavv1.ProtocolGCS},
		"the class lists one":                   {asked(lists("S3")), pavv1.ProtocolS3},
		"the class lists what is not supported": {asked(lists("azure")), pavv1.ProtocolAzure},
		"the second is supported":               {asked(lists("swift", "gcs", "s3")), pavv1.ProtocolS3},
		"both are supported":                    {asked(lists("gcs", "s3"), supports(pavv1.ProtocolS3, pavv1.ProtocolGCS)), pavv1.ProtocolGCS},
	} {
		if got := protocolOf(test.o.class, test.o.provisioner); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestNewContent(t *testing.T) {
	o := granted(class(func(c *cosiv0.BucketClass) { c.SupportedProtocols = []string{"s3"} }))
	o.object.ResourceVersion = "7"
	content := newContent(o)
	want := cosiv0.BucketContentSpec{
		Provisioner: "store", ReleasePolicy: cosiv0.ReleaseDelete, AccessModes: []cosiv0.AccessMode{cosiv0.AccessReadWrite}, SupportedProtocols: []string{"s3"}, BucketClassName: "s3",
		BucketRef: &cosiv0.BucketReference{Namespace: "a", Name: "photos", UUID: bucketUID, ResourceVersion: "7"},
		SecretRef: &cosiv0.SecretReference{Namespace: "a", Name: "photos-s3"}, BucketIdentifier: bucketName, Parameters: o.class.Parameters,
	}
	if diff := cmp.Diff(want, content.Spec); diff != "" || content.Name != contentName || content.Labels[cosiv0.ProvisionerLabel] != "store" {
		t.Errorf("the BucketContent %q has the labels %v, and (-want +got):\n%s", content.Name, content.Labels, diff)
	}
	o.object.ResourceVersion = "8"
	content.Status.Phase = cosiv0.ContentBound
	if !shows(content, o) {
		t.Error("a Bucket that changes changes its BucketContent")
	}
	if got := newContent(granted(static, class(func(c *cosiv0.BucketClass) { c.AccessMode = cosiv0.AccessReadOnly }))).Spec; *got.SecretRef != (cosiv0.SecretReference{Namespace: "pav-credentials", Name: "old-keys"}) || got.AccessModes[0] != cosiv0.AccessReadOnly {
		t.Errorf("the BucketContent of a static bucket has %+v", got)
	}
}

func TestCopyOfClass(t *testing.T) {
	record := recorded().bucket
	if class := copyOfClass(record); class == nil || class.Name != "s3" || class.ReleasePolicy != cosiv0.ReleaseDelete {
		t.Errorf("got %+v", class)
	}
	for _, text := range []string{`{}`, `{"metadata": {"name": 7}}`, `{"metadata": {"name": "s3"}, "accessMode": {}}`} {
		record.Spec.Class.Raw = []byte(text)
		if class := copyOfClass(record); class != nil {
			t.Errorf("%s: got %+v", text, class)
		}
	}
	record.Spec.Class = nil
	if class := copyOfClass(record); class != nil {
		t.Errorf("got %+v", class)
	}
}
