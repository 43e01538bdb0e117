package lifecycle

import (
	"fmt"
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// startsWithin is after how long an admitted claim's pod that does not answer is news: for a person who looks, soon.
const startsWithin = 5 * time.Second

// Observed is what was seen of an admitted claim's sandbox. The zero value is a sandbox of which nothing stands yet.
type Observed struct {
	// Taken names an object of the sandbox's name that is somebody else's; empty if there is none.
	Taken string
	// Clearing names an object that is being deleted, an earlier claim's of this name or this one's own; empty if there is none.
	Clearing string
	// Rejected is the API server's refusal of an object that was built; empty if it took them.
	Rejected string
	// Deployment is the Deployment as it stands; nil until it does.
	Deployment *v1alpha1.DeploymentRecord
	// DeploymentReady says that the Deployment's pod is ready at its current generation.
	DeploymentReady bool
	// Refused is why one of the objects, or the Deployment's pod, cannot be created for now, in the refuser's words; empty if
	// it can.
	Refused string
	// Pod is what the newest pod waits for.
	Pod PodObserved
	// Starting says that the sandbox is so new that a pod which does not answer is no news.
	Starting bool
	// Routed says that the Service has a ready endpoint.
	Routed bool
	// Addresses is where the Service answers; empty until it has a cluster IP.
	Addresses map[string]string
}

// PodObserved is what was seen of the sandbox's newest living pod. The zero value is no pod.
type PodObserved struct {
	// Name is the pod's name; empty if there is no pod.
	Name string
	// Unschedulable is the scheduler's message where it cannot place the pod; empty otherwise.
	Unschedulable string
	// WaitingReason and WaitingMessage are kubelet's, of a container that is not running.
	WaitingReason, WaitingMessage string
	// LastExit says how a container that is not ready last ended; empty if it never has.
	LastExit string
}

// terminalWaiting are kubelet's reasons for which no amount of waiting helps.
var terminalWaiting = map[string]string{
	"InvalidImageName":  v1alpha1.ReasonInvalidImageName,
	"ErrImageNeverPull": v1alpha1.ReasonErrImageNeverPull,
}

// patientWaiting are kubelet's reasons which may pass: a registry comes back, a dependency starts.
var patientWaiting = map[string]string{
	"ErrImagePull":               v1alpha1.ReasonImagePullBackOff,
	"ImagePullBackOff":           v1alpha1.ReasonImagePullBackOff,
	"RegistryUnavailable":        v1alpha1.ReasonImagePullBackOff,
	"CrashLoopBackOff":           v1alpha1.ReasonCrashLoopBackOff,
	"CreateContainerConfigError": v1alpha1.ReasonPodNotReady,
	"CreateContainerError":       v1alpha1.ReasonPodNotReady,
	"RunContainerError":          v1alpha1.ReasonPodNotReady,
}

// Starting is for how long an admitted claim is still so new that a pod of it which does not answer is no news: nearly
// every claim would be told of that between its admission and being Bound. Zero is a claim that is told: one that is not
// new, that was Bound before, or of which something else was told since. A clock behind the one that admitted the claim
// keeps nothing back.
func Starting(claim *v1alpha1.SandboxClaim, now time.Time) time.Duration {
	status := &claim.Status
	if status.BoundAt != nil || status.LastUsedAt == nil || v1alpha1.ReadyCondition(status.Conditions).Reason != v1alpha1.ReasonCreating {
		return 0
	}
	left := status.LastUsedAt.Add(startsWithin).Sub(now)
	if left > startsWithin {
		return 0
	}
	return max(left, 0)
}

// Stand says where an admitted claim stands: Bound when its addresses can be dialled, Failed when nothing can help,
// otherwise Pending with the most telling cause and the other party's own words.
func Stand(seen Observed) Verdict {
	pod := seen.Pod
	switch {
	case seen.Taken != "":
		return pending(v1alpha1.ReasonNameTaken, fmt.Sprintf("%s exists and is not this claim's, so it is left alone: delete or rename it", seen.Taken))
	case seen.Clearing != "":
		return pending(v1alpha1.ReasonClearingPrevious, fmt.Sprintf("%s is left from before and is being deleted: it is made anew once it has gone", seen.Clearing))
	case seen.Rejected != "":
		return failed(v1alpha1.ReasonSandboxRejected, "the API server rejected the sandbox: "+seen.Rejected)
	case seen.DeploymentReady && seen.Routed && len(seen.Addresses) > 0:
		return Verdict{Phase: v1alpha1.PhaseBound, Reason: v1alpha1.ReasonSandboxReady, Message: "the sandbox answers at its addresses",
			Addresses: seen.Addresses, Deployment: seen.Deployment}
	case terminalWaiting[pod.WaitingReason] != "":
		return failed(terminalWaiting[pod.WaitingReason], fmt.Sprintf("pod %s: %s", pod.Name, told(pod)))
	case seen.Refused != "" && pod.Name == "":
		return pending(v1alpha1.ReasonPodRefused, seen.Refused)
	case pod.Unschedulable != "":
		return pending(v1alpha1.ReasonUnschedulable, pod.Unschedulable)
	case patientWaiting[pod.WaitingReason] != "":
		return pending(patientWaiting[pod.WaitingReason], fmt.Sprintf("pod %s: %s", pod.Name, told(pod)))
	case pod.Name != "" && (pod.LastExit != "" || !seen.Starting):
		return pending(v1alpha1.ReasonPodNotReady, notReady(pod))
	}
	return creating()
}

// notReady tells of a pod that has not said why it does not answer.
func notReady(pod PodObserved) string {
	if pod.LastExit != "" {
		return fmt.Sprintf("pod %s does not answer: %s", pod.Name, pod.LastExit)
	}
	return fmt.Sprintf("pod %s does not answer yet", pod.Name)
}

// told is what kubelet says, after how the container ended: that is the cause, and the back-off only its consequence.
func told(pod PodObserved) string {
	words := pod.WaitingMessage
	if words == "" {
		words = pod.WaitingReason
	}
	if pod.LastExit != "" {
		words = pod.LastExit + "; " + words
	}
	return words
}
