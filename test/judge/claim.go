package judge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// Claim is a claim as the last event showed it.
type Claim struct {
	*v1alpha1.SandboxClaim
	// Appeared is when it was first seen, and Changed when it was last, by the machine's clock.
	Appeared, Changed time.Time
	// Leased is when its wait lease was first seen as it stands, by the judge's clock.
	Leased time.Time

	// created and revision are etcd's, of the claim's first and last write.
	created, revision int64
	// free is the revision since which its session's limits have left it room; 0 while they leave none.
	free int64
}

// Admitted says whether it has been given a sandbox.
func (c *Claim) Admitted() bool { return c.Status.Class != nil && c.Status.SandboxName != "" }

// Live says whether it counts against limits.
func (c *Claim) Live() bool {
	return c.DeletionTimestamp == nil && c.Status.Phase != v1alpha1.PhaseFailed && c.Status.Phase != v1alpha1.PhaseCompleted
}

// Waits says whether it is live and has no sandbox yet.
func (c *Claim) Waits() bool { return c.Live() && !c.Admitted() }

// ByAcquire says whether acquire wrote it.
func (c *Claim) ByAcquire() bool { return v1alpha1.WrittenByAcquire(c.Status.Conditions) }

// Key is what an acquire of it asks for.
func (c *Claim) Key() Key { return Key{c.RuntimeName(), c.Spec.SessionID, c.Spec.Handle} }

// Sandbox is which of its runtime's sandboxes it is one of.
func (c *Claim) Sandbox() string { return SandboxOf(c.Spec.Handle) }

// SandboxOf is the sandbox that a handle names an instance of.
func SandboxOf(handle string) string {
	name, _, _ := strings.Cut(handle, "/")
	return name
}

// Key is what an acquire asks for.
type Key struct{ Runtime, Session, Handle string }

func (k Key) session() string { return k.Runtime + "/" + k.Session }

// String is the claim in a line.
func (c *Claim) String() string {
	at := func(label string, t interface{ Format(string) string }, set bool) string {
		if !set {
			return ""
		}
		return " " + label + "=" + t.Format("15:04:05.000")
	}
	status := &c.Status
	out := fmt.Sprintf("%s/%s/%s %s %s(%s)", c.RuntimeName(), c.Spec.SessionID, c.Spec.Handle, Short(c.UID), status.Phase, framework.Reason(c.SandboxClaim))
	if c.Admitted() {
		out += " admitted"
	}
	out += at("queuedAt", status.QueuedAt, status.QueuedAt != nil) + at("boundAt", status.BoundAt, status.BoundAt != nil) +
		at("lastUsedAt", status.LastUsedAt, status.LastUsedAt != nil) + at("releaseAt", status.ReleaseAt, status.ReleaseAt != nil)
	if status.Wait != nil {
		out += fmt.Sprintf(" wait=%s+%ds", status.Wait.RenewTime.Format("15:04:05.000"), status.Wait.DurationSeconds)
	}
	if status.Replaces != "" {
		out += " replaces=" + Short(status.Replaces)
	}
	if c.DeletionTimestamp != nil {
		out += " terminating"
	}
	return out
}

// Short is the beginning of a UID, which is enough to tell one from another.
func Short[T ~string](uid T) string { return string(uid[:min(8, len(uid))]) }

// ByAge orders claims as they are admitted.
func ByAge(a, b *Claim) int {
	return cmp.Or(a.Status.QueuedAt.Compare(b.Status.QueuedAt.Time), cmp.Compare(a.UID, b.UID))
}
