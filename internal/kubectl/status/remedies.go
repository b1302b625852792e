package status

import (
	"fmt"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// remedies are the first steps after failures with special reasons, for the namespace of the pod.
var remedies = map[pavv1.FailureReason]func(namespace string) Step{
	pavv1.FailureNamespaceNotOpen: func(namespace string) Step {
		return Step{Text: "if workflow pods may run there, open the namespace; anyone who may edit it can reach what they reach",
			Command: fmt.Sprintf("kubectl label namespace %s %s=true", namespace, pavv1.AllowPodsLabel)}
	},
	pavv1.FailureQuotaExceeded: func(namespace string) Step {
		return Step{Text: "raise the quota, or delete pods that it counts", Command: "kubectl describe resourcequota -n " + namespace}
	},
	pavv1.FailurePodSecurity: func(namespace string) Step {
		return Step{Text: "see what the namespace allows; change it or the pod template", Command: "kubectl describe namespace " + namespace}
	},
	pavv1.FailureInfeasible: func(string) Step {
		return Step{Text: "the pod says that it would fail again: change the claim, the definition or the storage that it speaks of"}
	},
	protocol.SecretNameTaken: func(string) Step {
		return Step{Text: "delete the Secret of that name, which PaV did not write, or ask for access with another name of the Secret"}
	},
	pavv1.FailureHandleInUse: func(string) Step {
		return Step{Text: "give each volume and each snapshot a handle of its own; only if the data of the other object is not needed, delete that object"}
	},
}
