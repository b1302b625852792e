package integration

import (
	_ "embed" // for the protocol
	"slices"
	"strings"
	"testing"
)

// protocol is what the Kubernetes proposal "external dynamic provisioners" asks of a provisioner.
//
//go:embed testdata/protocol.txt
var protocol string

// promise is a sentence of the protocol with MUST or SHOULD, and how it is kept.
type promise struct {
	sentence string

	// instead says why the sentence, or a part of it, does not hold as it was written in 2016, and
	// what is done instead, which the tests then hold; empty where it holds.
	instead string

	// tests are the tests that hold it, each as "<package> <test>[/<subtest>]".
	tests []string
}

var promises = []promise{
	{
		sentence: "It MUST have a distinct name, following Kubernetenes plugin naming scheme `<vendor name>/<provisioner name>`, e.g. `gluster.org/gluster-volume`.",
		instead:  "the provisioner is a CSI driver, whose name may have no slash; it is the name of a PavProvisioner, a DNS label, and distinct among CSI drivers",
		tests: []string{
			"internal/controller/provisioner TestDecide/a name that is no DNS label is refused",
			"internal/controller/provisioner TestDecide/PaV's own driver name is refused",
			"test/integration TestForeignCSIDriverIsNotTouched",
		},
	},
	{
		sentence: "The provisioner SHOULD send events on a claim to report any errors related to provisioning a volume for the claim.",
		tests: []string{
			"test/integration TestRefusals",
			"test/e2e TestValidationPodFails",
			"test/e2e TestCreationPodFails_IsRevertedAndTriedAgain",
			"test/e2e TestCreationPodWithoutImage_EventOnClaim_AndRecovery",
			"test/e2e TestUnusableResults",
		},
	},
	{
		sentence: "The provisioner MUST implement also a deleter.",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/e2e TestDynamicVolume_AllFivePodsRun",
		},
	},
	{
		sentence: "It MUST NOT assume that any other internal or external plugin is present.",
		instead:  "nothing else is: the controllers of Kubernetes that run in these tests are those of volumes and their protection alone, and a CSIDriver that is missing is made before the first volume",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/integration TestProvisionerHasACSIDriver",
			"internal/controller/volume TestDecide/handle recorded, no CSIDriver yet: wait",
		},
	},
	{
		sentence: "All other claims MUST be ignored.",
		instead:  "the annotation is volume.kubernetes.io/storage-provisioner now, and its beta name still counts; as tenants can write both, the StorageClass must say the same",
		tests: []string{
			"test/integration TestOtherProvisionersClaimIsIgnored",
			"internal/controller/claim TestDecide/a claim of another provisioner is ignored",
			"internal/controller/claim TestDecide/a forged annotation does not beat the StorageClass",
			"internal/controller/claim TestDecide/the older annotation counts, too",
		},
	},
	{
		sentence: "The provisioner MUST check that the claim is unbound, i.e. its `claim.Spec.VolumeName` is empty.",
		tests: []string{
			"test/integration TestBoundClaim_IsIgnored",
			"internal/controller/claim TestDecide/a bound claim is ignored",
			"internal/controller/claim TestDecide/a lost claim is ignored",
		},
	},
	{
		sentence: "Bound volumes MUST be ignored.",
		tests: []string{
			"test/integration TestBoundClaim_IsIgnored",
			"test/integration TestCreationPodIsNotScheduled_AndNotWantedAnyMore/bound elsewhere",
			"internal/controller/volume TestDecide/claim bound to another volume: delete the PavVolume",
		},
	},
	{
		sentence: "If not found, it SHOULD report an error (by sending an event to the claim) and it SHOULD retry periodically with step i.",
		instead:  "spec.storageClassName names the class now; the beta annotation still counts; an attempt that began with a class goes on with what that was",
		tests: []string{
			"test/integration TestMissingStorageClass_IsReported_AndClaimRecovers",
			"test/integration TestOlderAnnotation_NamesTheStorageClass",
			"test/integration TestStorageClassDeleted_WhileItsClaimFails_IsRemembered",
			"internal/controller/claim TestDecide/a missing StorageClass is named",
			"internal/controller/claim TestDecide/the older annotation names the StorageClass",
		},
	},
	{
		sentence: "The provisioner MUST parse arguments in the `StorageClass` and `claim.Spec.Selector` and provisions appropriate storage asset that matches both the parameters and the selector.",
		instead:  "parameters are the definition's to read; selectors are refused",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/integration TestRefusals/selector",
			"internal/podplan TestParameters",
			"test/integration TestStorageClassReplaced_WhileItsClaimFails_IsThatOfTheNextAttempt",
		},
	},
	{
		sentence: "When it encounters unknown parameters in `storageClass.Parameters` or `claim.Spec.Selector` or the combination of these parameters is impossible to achieve, it SHOULD report an error and it MUST NOT provision a volume.",
		instead:  "which of its own parameters are known is for the definition's validation to say; of those that are reserved for all provisioners, unknown ones are refused",
		tests: []string{
			"test/integration TestRefusals/parameter",
			"test/integration TestRefusals/selector",
			"test/integration TestRefusals/clone",
			"test/integration TestRefusals/attributes",
			"test/integration TestRefusals/topologies",
			"test/e2e TestValidationPodFails",
			"test/e2e TestCreationTemplateThatDoesNotRender_EventOnClaim_AndRecovery",
		},
	},
	{
		sentence: "All errors found during parsing or provisioning SHOULD be send as events on the claim and the provisioner SHOULD retry periodically with step i.",
		tests: []string{
			"test/integration TestRefusals/template",
			"test/integration TestAttempts_ContinueAfterARestart",
			"internal/controller/volume TestDecideAfterFailures/delay over: begin",
			"test/e2e TestCreationPodFails_IsRevertedAndTriedAgain",
			"test/e2e TestRevertingFails_NothingElseRunsBeforeItSucceeds",
		},
	},
	{
		sentence: "As parsing (and understanding) claim selectors is hard, the sentence \"MUST parse ... `claim.Spec.Selector`\" will in typical case lead to simple refusal of claims that have any selector:",
		tests: []string{
			"test/integration TestRefusals/selector",
			"internal/controller/claim TestDecide/a selector is refused",
		},
	},
	{
		sentence: "When the volume is provisioned, the provisioner MUST create a new PV representing the storage asset and save it in Kubernetes.",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"internal/controller/volume TestDecide/handle recorded: write the PersistentVolume",
			"test/e2e TestControllerStoppedAfterEachWrite",
		},
	},
	{
		sentence: "When this fails, it SHOULD retry creating the PV again few times.",
		instead:  "it is tried until it succeeds, or nobody wants the volume any more",
		tests: []string{
			"test/integration TestPersistentVolumeThatCannotBeWritten/is written when it can be",
			"test/integration TestUnreliableLine",
		},
	},
	{
		sentence: "If all attempts fail, it MUST delete the storage asset.",
		instead:  "attempts to write the PV end with the claim; what was made by then, or by a creation that failed, is reverted by the deletion pod",
		tests: []string{
			"test/integration TestPersistentVolumeThatCannotBeWritten/is reverted when nobody wants it",
			"internal/controller/volume TestDecideAfterFailures/created, claim gone: revert",
			"test/integration TestCreationPodIsNotScheduled_AndNotWantedAnyMore/claim deleted",
			"test/e2e TestClaimDeletedDuringCreation",
			"test/e2e TestCreationPodFails_IsRevertedAndTriedAgain",
		},
	},
	{
		sentence: "All errors SHOULD be sent as events to the claim.",
		tests: []string{
			"test/integration TestPersistentVolumeThatCannotBeWritten",
			"test/integration TestPersistentVolumeOfTheName_IsInTheWay",
			"test/e2e TestRevertingFails_NothingElseRunsBeforeItSucceeds",
		},
	},
	{
		sentence: "The created PV MUST have these properties:",
		tests: []string{
			"internal/podplan TestPersistentVolume",
			"test/integration TestDynamicClaimIsBound",
		},
	},
	{
		sentence: "`pv.Spec.ClaimRef` MUST point to the claim that led to its creation (including the claim UID).",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/integration TestClaimReplaced_BetweenProvisioningAndDeletion",
			"test/e2e TestClaimReplacedWhileCreating",
		},
	},
	{
		sentence: "`pv.Annotations[\"pv.kubernetes.io/provisioned-by\"]` MUST be set to name of the external provisioner.",
		tests: []string{
			"internal/podplan TestPersistentVolume",
			"test/e2e TestDynamicVolume_AllFivePodsRun",
		},
	},
	{
		sentence: "`pv.Annotations[\"volume.beta.kubernetes.io/storage-class\"]` MUST be set to name of the storage class requested by the claim.",
		instead:  "pv.spec.storageClassName is, which has taken the annotation's place; with both, Kubernetes would believe the annotation",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/integration TestOlderAnnotation_NamesTheStorageClass",
		},
	},
	{
		sentence: "It SHOULD save any information that is needed to delete the storage asset there, as appropriate StorageClass instance may not exist when the volume will be deleted.",
		instead:  "it is in the PavVolume, which is written before the storage is, outlives the PV, and is no tenant's to change",
		tests: []string{
			"test/integration TestPersistentVolume_IsDeletedOnlyAfterItsDeletionPodHasSucceeded",
			"test/integration TestRetainedRecord_IsDeletedWhenTheAdministratorSaysSo",
			"test/e2e TestDeletion_NeedsNoStorageClass",
		},
	},
	{
		sentence: "However, references to Secret instance or direct username/password to a remote storage appliance MUST NOT be stored there, see issue #34822.",
		instead:  "the parameters that would refer to Secrets are refused; the PV has no annotation but the one above",
		tests: []string{
			"test/integration TestRefusals/parameter",
			"internal/podplan TestParameters/a reserved one with a secret",
			"internal/podplan TestPersistentVolume",
		},
	},
	{
		sentence: "`pv.Labels` MUST be set to match `claim.spec.selector`.",
		instead:  "claims with a selector are refused, so that there is nothing to match",
		tests:    []string{"test/integration TestRefusals/selector"},
	},
	{
		sentence: "`pv.Spec` MUST be set to match requirements in `claim.Spec`, especially access mode and PV size.",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"internal/podplan TestPersistentVolume",
			"test/integration TestRefusals/mode",
			"test/integration TestRefusals/access",
			"test/integration TestAccessibleTopology_IsTheNodeAffinityOfTheVolume",
		},
	},
	{
		sentence: "The provisioned volume size MUST NOT be smaller than size requested in the claim, however it MAY be larger.",
		tests: []string{
			"test/integration TestRefusals/capacity",
			"test/integration TestDynamicClaimIsBound",
			"internal/podplan TestOutcome/a capacity below the request",
			"test/e2e TestUnusableResults",
			"test/e2e TestDynamicVolume_AllFivePodsRun",
		},
	},
	{
		sentence: "`pv.Spec.PersistentVolumeSource` MUST be set to point to the created storage asset.",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/integration TestHandleInUse",
			"internal/podplan TestOutcome",
			"test/e2e TestDynamicVolume_DefinitionHasPrecedenceOverThePod",
			"test/e2e TestDynamicVolume_DefaultHandle",
		},
	},
	{
		sentence: "`pv.Spec.PersistentVolumeReclaimPolicy` SHOULD be set to `Delete` unless user manually configures other reclaim policy.",
		instead:  "it is that of the StorageClass, where Delete is the default",
		tests: []string{
			"test/integration TestDynamicClaimIsBound",
			"test/integration TestRetainedVolumeStaysAndHoldsNothing",
			"internal/podplan TestPersistentVolume",
		},
	},
	{
		sentence: "`pv.Name` MUST be unique.",
		tests: []string{
			"test/integration TestPersistentVolumeOfTheName_IsInTheWay",
			"internal/controller/volume TestDecide/PersistentVolume of the name has another claim: report it",
			"internal/controller/volume TestDecide/PersistentVolume of the name has another driver: report it",
		},
	},
	{
		sentence: "External deleters MUST watch for PV changes.",
		tests: []string{
			"test/integration TestReclaimPolicyFollowsThePersistentVolume",
			"internal/controller/volume TestDecide/released: record the deletion first",
			"internal/controller/volume TestDecide/bound volume: nothing to do",
		},
	},
	{
		sentence: "It MUST check reclaim policy of the PV and ignore all PVs whose `Spec.PersistentVolumeReclaimPolicy` is not `Delete`.",
		tests: []string{
			"test/integration TestRetainedVolumeStaysAndHoldsNothing",
			"test/integration TestReclaimPolicyFollowsThePersistentVolume",
			"test/integration TestDeletionPodInLine_IsNotRunForAVolumeThatIsToBeRetained",
			"internal/controller/volume TestDecide/released with policy Retain: record it",
			"internal/controller/volume TestDecideAfterFailures/changed to Retain between two deletion pods: align",
			"test/e2e TestReclaimPolicy_IsThatOfThePersistentVolume",
		},
	},
	{
		sentence: "It MUST delete the storage asset.",
		tests: []string{
			"test/integration TestPersistentVolume_IsDeletedOnlyAfterItsDeletionPodHasSucceeded",
			"internal/controller/volume TestDecide/released, definition has a deletion pod: record it",
			"test/e2e TestDynamicVolume_AllFivePodsRun",
			"test/e2e TestDeletion_WaitsForTheLastStage",
		},
	},
	{
		sentence: "Only after the storage asset was successfully deleted, it MUST delete the PV object in Kubernetes.",
		tests: []string{
			"test/integration TestPersistentVolume_IsDeletedOnlyAfterItsDeletionPodHasSucceeded",
			"test/integration TestPersistentVolumeDeletedByHandIsProtected",
			"internal/controller/volume TestDecideAfterFailures/storage deleted: delete the PersistentVolume",
			"test/e2e TestDeletionPodFails_IsTriedUntilItSucceeds",
		},
	},
	{
		sentence: "Any error SHOULD be sent as an event on the PV being deleted and the deleter SHOULD retry to delete the volume periodically.",
		tests: []string{
			"test/integration TestPersistentVolume_IsDeletedOnlyAfterItsDeletionPodHasSucceeded",
			"internal/controller/volume TestDecideAfterFailures/deletion failed, delay over: record a deletion pod",
			"test/e2e TestDeletionPodFails_IsTriedUntilItSucceeds",
			"test/e2e TestDeletionPodFitsNoNode_EventOnVolume_AndRecovery",
		},
	},
	{
		sentence: "The deleter SHOULD NOT use any information from StorageClass instance referenced by the PV.",
		tests: []string{
			"test/integration TestPersistentVolume_IsDeletedOnlyAfterItsDeletionPodHasSucceeded",
			"test/integration TestDynamicClaimIsBound",
			"test/e2e TestDeletion_NeedsNoStorageClass",
		},
	},
	{
		sentence: "Pointer to the Secret instance shall be parameter of the StorageClass and it MUST NOT be copied around the system e.g. in annotations of PVs.",
		instead:  "it is about internal provisioners; a definition names the Secrets of its pods by itself, and parameters that would point to some are refused",
		tests: []string{
			"test/integration TestRefusals/parameter",
			"internal/podplan TestParameters/a reserved one with a secret",
		},
	},
}

// TestProtocol is about the table above: it has every sentence of the protocol, and its tests exist.
func TestProtocol(t *testing.T) {
	var kept []string
	all := sources{}
	for _, p := range promises {
		kept = append(kept, p.sentence)
		if len(p.tests) == 0 {
			t.Errorf("no test holds: %s", p.sentence)
		}
		for _, name := range p.tests {
			if problem := all.find(t, name); problem != "" {
				t.Errorf("%s: %s, which is to hold: %s", name, problem, p.sentence)
			}
		}
	}
	demanded := slices.DeleteFunc(sentences(protocol), func(s string) bool { return !strings.Contains(s, "MUST") && !strings.Contains(s, "SHOULD") })
	for _, s := range demanded {
		if !slices.Contains(kept, s) {
			t.Errorf("the protocol demands, and the table lacks: %s", s)
		}
	}
	for _, s := range kept {
		if !slices.Contains(demanded, s) {
			t.Errorf("the table has, and the protocol lacks: %s", s)
		}
	}
}
