package volume

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// attributesClass returns a VolumeAttributesClass of the provisioner.
func attributesClass(name, key string) *storagev1.VolumeAttributesClass {
	return &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: "demo", Parameters: map[string]string{key: "1"}}
}

// has records that the volume has the attributes of a class, and that everything shows that.
func has(class string) func(*observation) {
	return func(o *observation) {
		o.attributes = pavv1.VolumeAttributes{Class: class, Parameters: map[string]string{"iops": "1"}}
		o.volume.Status.Attributes = &o.attributes
		o.pv.Spec.VolumeAttributesClassName, o.user.Status.CurrentVolumeAttributesClassName = &class, &class
		shownAttributes(o)
	}
}

// wants makes the claim name a class.
func wants(class string) func(*observation) {
	return func(o *observation) {
		o.user.Spec.VolumeAttributesClassName, o.attributesClass = &class, attributesClass(class, "iops")
		shownAttributes(o)
	}
}

// modifiable returns a volume in use that has the attributes of silver, and whose claim names a class, as everything shows.
func modifiable(class string) *state {
	return growable("1Gi").with(func(o *observation) {
		o.provisioner.Name = "demo"
		o.provisioner.Spec.VolumeModification = &pavv1.VolumeModification{Parameters: []string{"iops"}, PodTemplate: field(`{}`)}
	}).with(has("silver")).with(wants(class))
}

// shownAttributes makes the claim show what it is to show.
func shownAttributes(o *observation) { attributesOf(*o).show(&o.user.Status, metav1.NewTime(noon)) }

// beingModified returns a volume that is to have the attributes of gold, with a recorded pod. The claim shows that.
func beingModified() *state {
	return modifiable("gold").with(func(o *observation) {
		status := &o.volume.Status
		status.Step, status.Pods = pavv1.StepModifying, 2
		status.Pod = &pavv1.PodReference{Namespace: "pav-pods", Name: "pod"}
		status.Modification = &pavv1.VolumeModificationRecord{Target: pavv1.VolumeAttributes{Class: "gold", Parameters: map[string]string{"iops": "1"}}, ProvisionerGeneration: o.provisioner.Generation}
		status.Modification.Attempt = 1
		shownAttributes(o)
	})
}

// failedToModify returns a volume whose modification to gold has failed this many seconds ago, and whose claim names a class.
func failedToModify(class string, reason pavv1.FailureReason, seconds int) *state {
	return beingModified().with(func(o *observation) {
		o.volume.Status.Step, o.volume.Status.Pod = "", nil
		m := o.volume.Status.Modification
		m.Uncertain, m.Partial = reason == pavv1.FailurePodRemoved, reason != pavv1.FailureInfeasible
		m.Failure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowModification, Reason: reason, Message: "why", Time: ago(seconds)}
	}).with(wants(class))
}

func noModification(o *observation) { o.provisioner.Spec.VolumeModification = nil }

func withoutProvisioner(o *observation) { o.provisioner = nil }

func noClass(o *observation) { o.attributesClass = nil; shownAttributes(o) }

func classIsOf(driver, key string) func(*observation) {
	return func(o *observation) {
		o.attributesClass = attributesClass(o.attributesClassWanted(), key)
		o.attributesClass.DriverName = driver
		shownAttributes(o)
	}
}

func unnamed(o *observation) {
	o.user.Spec.VolumeAttributesClassName, o.attributesClass = nil, nil
	shownAttributes(o)
}

func withoutAttributes(o *observation) {
	o.volume.Status.Attributes, o.attributes = nil, pavv1.VolumeAttributes{}
}

// whole and partial record that no pod, or that some pod, may have changed something.
func whole(o *observation) { o.volume.Status.Modification.Partial = false; shownAttributes(o) }

func partial(o *observation) { o.volume.Status.Modification.Partial = true; shownAttributes(o) }

// isKept leaves of a modification what is kept when it is not continued.
func isKept(o *observation) { o.volume.Status.Modification = keptModification(&o.volume.Status) }

func growsTo2Gi(o *observation) { requests("2Gi")(o) }

func saysModified(reason, message string) func(*observation) {
	return func(o *observation) {
		setCondition(o.volume, &o.volume.Status, pavv1.VolumeModified, reason, message)
	}
}

func TestDecide_OnModification(t *testing.T) {
	for name, test := range map[string]struct {
		state   *state
		want    step
		message string
		after   time.Duration
	}{
		// No pod is recorded.
		"the volume has what its claim names":       {state: modifiable("silver"), want: stepDone},
		"the claim names another class":             {state: modifiable("gold"), want: stepModify},
		"the claim names none any more":             {state: modifiable("gold").with(unnamed), want: stepDone},
		"the claim is being deleted":                {state: modifiable("gold").with(claimDeleted), want: stepDone},
		"no claim is bound":                         {state: modifiable("gold").with(noUser), want: stepDone},
		"the claim does not show it yet":            {state: modifiable("gold").with(func(o *observation) { o.user.Status.ModifyVolumeStatus = nil }), want: stepShowClaim},
		"the volume is to grow, too: that is first": {state: modifiable("gold").with(growsTo2Gi), want: stepExpand},
		"the volume cannot grow meanwhile":          {state: modifiable("gold").with(growsTo2Gi).with(noExpansion), want: stepWait, message: "no spec.volumeExpansion", after: time.Second},
		"the volume cannot grow, as was said": {state: modifiable("gold").with(growsTo2Gi).with(noExpansion).with(func(o *observation) {
			d := expansionTable.Decide(*o)
			setCondition(o.volume, &o.volume.Status, d.Condition, d.Reason, d.Message)
		}), want: stepModify},
		"the expansion failed a moment ago": {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 0).with(func(o *observation) {
			o.provisioner.Name = "demo"
			o.provisioner.Spec.VolumeModification = &pavv1.VolumeModification{Parameters: []string{"iops"}, PodTemplate: field(`{}`)}
		}).with(has("silver")).with(wants("gold")), want: stepModify, after: time.Second},
		"the PersistentVolume does not name it":                        {state: modifiable("silver").with(func(o *observation) { o.pv.Spec.VolumeAttributesClassName = nil }), want: stepUpdatePV},
		"a volume without attributes gets some":                        {state: modifiable("gold").with(withoutAttributes), want: stepModify},
		"the class does not exist":                                     {state: modifiable("gold").with(noClass), want: stepWait, message: `VolumeAttributesClass "gold" does not exist`},
		"the class is of another driver":                               {state: modifiable("gold").with(classIsOf("other", "iops")), want: stepWait, message: `is for volumes of the driver "other"`},
		"the class has a parameter that is not known":                  {state: modifiable("gold").with(classIsOf("demo", "size")), want: stepWait, message: "parameters[size]: spec.volumeModification.parameters"},
		"the definition has no modification":                           {state: modifiable("gold").with(noModification).with(shownAttributes), want: stepWait, message: "no spec.volumeModification"},
		"it has none, and none is needed":                              {state: modifiable("silver").with(noModification), want: stepDone},
		"the provisioner is gone":                                      {state: modifiable("gold").with(withoutProvisioner).with(shownAttributes), want: stepWait, message: "create it again"},
		"the provisioner is gone, and none is needed":                  {state: modifiable("silver").with(withoutProvisioner), want: stepDone},
		"it failed: wait":                                              {state: failedToModify("gold", pavv1.FailurePodFailed, 0), want: stepDone, after: time.Second},
		"it failed a while ago: again":                                 {state: failedToModify("gold", pavv1.FailurePodFailed, 1), want: stepModify},
		"it failed, and the definition has changed":                    {state: failedToModify("gold", pavv1.FailurePodFailed, 0).with(func(o *observation) { o.provisioner.Generation++ }), want: stepModify},
		"it failed, and a retry was requested":                         {state: failedToModify("gold", pavv1.FailurePodFailed, 0).with(func(o *observation) { o.retry = noon.Add(time.Second) }), want: stepModify},
		"it failed, and the claim names what was before: once more":    {state: failedToModify("silver", pavv1.FailurePodFailed, 1), want: stepModify},
		"it failed, and the claim names none any more: go on":          {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(unnamed), want: stepModify},
		"it failed without a pod, and the claim names what was before": {state: failedToModify("silver", pavv1.FailureRefused, 0).with(whole), want: stepEndModification},
		"it is infeasible, and the claim names what was before":        {state: failedToModify("silver", pavv1.FailureInfeasible, 0), want: stepEndModification},
		"it is infeasible after one that failed: what was before":      {state: failedToModify("silver", pavv1.FailureInfeasible, 1).with(partial), want: stepModify},
		"it is infeasible after one that failed, and none is named":    {state: failedToModify("gold", pavv1.FailureInfeasible, 1).with(partial).with(unnamed), want: stepEndModification},
		"it failed, and what was before is not allowed any more":       {state: failedToModify("silver", pavv1.FailurePodFailed, 1).with(noModification).with(shownAttributes), want: stepWait, message: "no spec.volumeModification"},
		"it is infeasible: wait longer":                                {state: failedToModify("gold", pavv1.FailureInfeasible, 60), want: stepDone, after: 9 * time.Minute},
		"it is infeasible: another class":                              {state: failedToModify("bronze", pavv1.FailureInfeasible, 1), want: stepModify},
		"it is infeasible: no class any more":                          {state: failedToModify("gold", pavv1.FailureInfeasible, 1).with(unnamed), want: stepEndModification},
		"a pod is lost: the same again":                                {state: failedToModify("silver", pavv1.FailurePodRemoved, 1), want: stepModify},
		"a pod is lost, and the class is gone":                         {state: failedToModify("gold", pavv1.FailurePodRemoved, 1).with(noClass), want: stepModify},
		"a pod is lost, and so is the definition":                      {state: failedToModify("gold", pavv1.FailurePodRemoved, 1).with(noModification).with(shownAttributes), want: stepWait, message: "no spec.volumeModification"},
		"it failed for a former claim, and this one names none":        {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(ofFormerClaim).with(unnamed), want: stepEndModification},
		"the same, as is recorded":                                     {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(ofFormerClaim).with(unnamed).with(isKept), want: stepDone},
		"the same, and this one names what was before":                 {state: failedToModify("silver", pavv1.FailurePodFailed, 0).with(ofFormerClaim).with(isKept).with(shownAttributes), want: stepModify},
		"it failed for a former claim, and this one names another":     {state: failedToModify("bronze", pavv1.FailurePodFailed, 0).with(ofFormerClaim).with(shownAttributes), want: stepModify},
		"a pod for a former claim is lost, and this one names none":    {state: failedToModify("gold", pavv1.FailurePodRemoved, 1).with(ofFormerClaim).with(unnamed), want: stepEndModification},
		"a pod for this claim is lost, and it names none":              {state: failedToModify("gold", pavv1.FailurePodRemoved, 1).with(unnamed), want: stepModify},
		"it was said that it cannot be modified":                       {state: modifiable("silver").with(saysModified("NoClass", "m")), want: stepEndModification},
		"a restored record of what the volume has":                     {state: failedToModify("gold", pavv1.FailurePodRemoved, 1).with(has("gold")), want: stepModify},

		// A pod is recorded.
		"the claim does not show the pod yet":              {state: beingModified().with(func(o *observation) { o.user.Status.ModifyVolumeStatus = nil }), want: stepShowClaim},
		"the pod is to be created":                         {state: beingModified(), want: stepRunPod},
		"the claim names another class first":              {state: beingModified().with(wants("bronze")), want: stepDropPod},
		"a former claim was to have it":                    {state: beingModified().with(ofFormerClaim), want: stepDropPod},
		"the claim names none first":                       {state: beingModified().with(unnamed), want: stepDropPod},
		"the claim is deleted first":                       {state: beingModified().with(claimDeleted), want: stepDropPod},
		"the volume is released first":                     {state: beingModified().with(releasedPV), want: stepDropPod},
		"the definition loses its modification":            {state: beingModified().with(noModification), want: stepDropPod},
		"the definition loses its parameter":               {state: beingModified().with(func(o *observation) { o.provisioner.Spec.VolumeModification.Parameters = nil }), want: stepDropPod},
		"the class is gone first":                          {state: beingModified().with(noClass), want: stepDropPod},
		"the class is another one first":                   {state: beingModified().with(func(o *observation) { o.attributesClass.Parameters = nil }), want: stepDropPod},
		"the pod runs":                                     {state: beingModified().pod(5, runs), want: stepDone, after: 25 * time.Second},
		"the pod runs, and another class is named":         {state: beingModified().pod(5, runs).with(wants("bronze")), want: stepDone, after: 25 * time.Second},
		"the pod cannot start, and another class is named": {state: beingModified().pod(5, pulls).with(wants("bronze")), want: stepStopPod},
		"the pod succeeded":                                {state: beingModified().pod(9, ended(corev1.PodSucceeded, 1)), want: stepRecordChanged},
		"it succeeded, and the volume is released":         {state: beingModified().pod(9, ended(corev1.PodSucceeded, 1)).with(releasedPV), want: stepRecordChanged},
		"it failed, and its words are not reported":        {state: beingModified().pod(9, ended(corev1.PodFailed, 1)), want: stepDone, after: 5 * time.Second},
		"the same, and the volume is released":             {state: beingModified().pod(9, ended(corev1.PodFailed, 1)).with(releasedPV), want: stepRecordFailure},
		"the pod failed":                                   {state: beingModified().pod(9, ended(corev1.PodFailed, 1), reported), want: stepRecordFailure},
		"the pod is gone":                                  {state: beingModified().with(vanishedPod), want: stepRecordFailure},
	} {
		t.Run(name, func(t *testing.T) {
			d := decideIn(test.state.o)
			if d.Step != test.want || !strings.Contains(d.Message, test.message) {
				t.Errorf("got %s by %q, message %q; want %s, %q", d.Step, d.Rule, d.Message, test.want, test.message)
			}
			if (d.Step == stepDone || test.after != 0) && d.After.Round(time.Second) != test.after {
				t.Errorf("again after %s, want %s", d.After, test.after)
			}
		})
	}
}

func TestAttributesOf(t *testing.T) {
	const pending, progress, infeasible = corev1.PersistentVolumeClaimModifyVolumePending, corev1.PersistentVolumeClaimModifyVolumeInProgress, corev1.PersistentVolumeClaimModifyVolumeInfeasible
	unshown := func(o *observation) { o.user.Status.ModifyVolumeStatus, o.user.Status.Conditions = nil, nil }
	for name, test := range map[string]struct {
		state *state
		want  attributes
	}{
		"a volume that has what its claim names":  {state: modifiable("silver"), want: attributes{current: "silver"}},
		"nothing has begun":                       {state: modifiable("gold"), want: attributes{current: "silver", target: "gold", state: pending}},
		"no such class":                           {state: modifiable("gold").with(noClass), want: attributes{current: "silver", target: "gold", state: pending}},
		"a class of another driver":               {state: modifiable("gold").with(classIsOf("other", "iops")), want: attributes{current: "silver", target: "gold", state: infeasible, failure: `VolumeAttributesClass "gold" is for volumes of the driver "other", not of PavProvisioner "demo"`}},
		"it is modified":                          {state: beingModified().with(unshown), want: attributes{current: "silver", target: "gold", state: progress, modifying: true}},
		"another class is named meanwhile":        {state: beingModified().with(wants("bronze")), want: attributes{current: "silver", target: "gold", state: progress, modifying: true}},
		"after a failure":                         {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(unshown), want: attributes{current: "silver", target: "gold", state: progress, modifying: true, failure: "why"}},
		"called infeasible":                       {state: failedToModify("gold", pavv1.FailureInfeasible, 1).with(unshown), want: attributes{current: "silver", target: "gold", state: infeasible, failure: "why"}},
		"after that, another class":               {state: failedToModify("bronze", pavv1.FailureInfeasible, 1).with(unshown), want: attributes{current: "silver", target: "bronze", state: pending}},
		"after a failure, what was before":        {state: failedToModify("silver", pavv1.FailurePodFailed, 1).with(unshown), want: attributes{current: "silver", target: "silver", state: pending}},
		"after a failure, none":                   {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(unnamed).with(unshown), want: attributes{current: "silver", target: "gold", state: progress, modifying: true, failure: "why"}},
		"an API server that drops it":             {state: beingModified().with(unshown).with(func(o *observation) { o.dropsAttributes = true }), want: attributes{current: "silver"}},
		"after that, none":                        {state: failedToModify("gold", pavv1.FailureInfeasible, 1).with(unnamed), want: attributes{current: "silver"}},
		"a pod is lost, and another class named":  {state: failedToModify("bronze", pavv1.FailurePodRemoved, 1).with(unshown), want: attributes{current: "silver", target: "gold", state: progress, modifying: true, failure: "why"}},
		"it has been modified":                    {state: modifiable("gold").with(has("gold")), want: attributes{current: "gold"}},
		"it failed for a former claim":            {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(ofFormerClaim).with(unshown), want: attributes{current: "silver", target: "gold", state: pending}},
		"the same, and this one names none":       {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(ofFormerClaim).with(unnamed).with(unshown), want: attributes{current: "silver"}},
		"the claim is being deleted":              {state: modifiable("gold").with(claimDeleted).with(unshown), want: attributes{current: "silver"}},
		"a volume without attributes, that shows": {state: modifiable("silver").with(withoutAttributes).with(unnamed), want: attributes{current: "silver"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			want := attributesOf(o)
			if diff := cmp.Diff(test.want, want, cmp.AllowUnexported(attributes{})); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			// What is written is what is seen then, and is not written again.
			want.show(&o.user.Status, metav1.NewTime(noon))
			if got := attributesShown(o.user); got != want {
				t.Errorf("it shows %+v, want %+v", got, want)
			}
			if again := attributesOf(o); again != want {
				t.Errorf("the next pass writes %+v", again)
			}
		})
	}
}

// The record of a static volume may have the name of a class only: the parameters are then those of the class, and never none.
func TestTargetAttributes_OfAClassWhoseParametersAreNotRecorded(t *testing.T) {
	unknown := func(o *observation) { o.attributes.Parameters = nil }
	back := failedToModify("silver", pavv1.FailurePodFailed, 900).with(static).with(unknown)
	class, target := back.o.targetAttributes()
	if want := (pavv1.VolumeAttributes{Class: "silver", Parameters: map[string]string{"iops": "1"}}); class != "silver" || target == nil || !cmp.Equal(*target, want) {
		t.Errorf("got class %q with %v, want %v", class, target, want)
	}
	if got := decideIn(back.with(noClass).o); got.Step == stepModify {
		t.Errorf("without the class: %s by the rule %q", got.Step, got.Rule)
	}
}

// What a pod for a former claim has not done is not done for the present one.
func TestTargetAttributes_AfterAFormerClaim(t *testing.T) {
	for name, test := range map[string]struct {
		state *state
		want  string
	}{
		"the present claim": {state: failedToModify("silver", pavv1.FailurePodRemoved, 1), want: "gold"},
		"a former claim":    {state: failedToModify("silver", pavv1.FailurePodRemoved, 1).with(ofFormerClaim), want: "silver"},
	} {
		t.Run(name, func(t *testing.T) {
			if class, target := test.state.o.targetAttributes(); class != test.want || target == nil || target.Class != test.want {
				t.Errorf("got class %q with %v, want %q", class, target, test.want)
			}
		})
	}
}
