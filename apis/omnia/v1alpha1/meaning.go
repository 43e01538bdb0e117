package v1alpha1

import (
	"encoding/json"
	"time"
)

// SandboxesEnabled says whether the runtime may have sandboxes.
func (r *AgentRuntime) SandboxesEnabled() bool {
	return r.Spec.Sandbox != nil && r.Spec.Sandbox.Enabled
}

// MaxConcurrent is how many claims of the runtime may be admitted at once.
func (r *AgentRuntime) MaxConcurrent() int32 {
	if s := r.Spec.Sandbox; s != nil && s.MaxConcurrent != nil {
		return *s.MaxConcurrent
	}
	return DefaultMaxConcurrent
}

// MaxPerSession is how many live claims one session of the runtime may hold.
func (r *AgentRuntime) MaxPerSession() int32 {
	if s := r.Spec.Sandbox; s != nil && s.MaxPerSession != nil {
		return *s.MaxPerSession
	}
	return DefaultMaxPerSession
}

// IdleTimeout is how long a claim of the runtime may go untouched. One that is not positive counts as unset: it would
// delete every sandbox at once.
func (r *AgentRuntime) IdleTimeout() time.Duration {
	if s := r.Spec.Sandbox; s != nil && s.IdleTimeout != nil && s.IdleTimeout.Duration > 0 {
		return s.IdleTimeout.Duration
	}
	return DefaultIdleTimeout
}

// ReleaseGrace is how long a claim outlives its conversation; 0 is not at all. A negative one counts as unset.
func (r *AgentRuntime) ReleaseGrace() time.Duration {
	if s := r.Spec.Sandbox; s != nil && s.ReleaseGrace != nil && s.ReleaseGrace.Duration >= 0 {
		return s.ReleaseGrace.Duration
	}
	return DefaultReleaseGrace
}

// MountReleaseGrace is ReleaseGrace for a claim that mounts a project or the session workspace.
func (r *AgentRuntime) MountReleaseGrace() time.Duration {
	if s := r.Spec.Sandbox; s != nil && s.MountReleaseGrace != nil && s.MountReleaseGrace.Duration >= 0 {
		return s.MountReleaseGrace.Duration
	}
	return DefaultMountReleaseGrace
}

// Sandbox finds the sandbox that a handle's first segment names; false if the registry does not declare it.
func (t *ToolRegistry) Sandbox(name string) (RegistrySandbox, bool) {
	for _, s := range t.Spec.Sandboxes {
		if s.Name == name {
			return s, true
		}
	}
	return RegistrySandbox{}, false
}

// Instances is how many instances of the sandbox one session may hold.
func (s RegistrySandbox) Instances() int32 {
	if s.MaxInstances == nil || *s.MaxInstances < 1 || s.TargetPath != "" {
		return DefaultMaxInstances
	}
	return *s.MaxInstances
}

// UnmarshalJSON takes a sandbox of another shape for none. The field is this project's reading (see RegistryHandler): where
// Omnia means something else by it, its registries must be readable all the same, and acquire reads them all or none.
func (h *RegistryHandler) UnmarshalJSON(data []byte) error {
	var held struct {
		Name    string          `json:"name"`
		Sandbox json.RawMessage `json:"sandbox"`
	}
	if err := json.Unmarshal(data, &held); err != nil {
		return err
	}
	*h = RegistryHandler{Name: held.Name}
	var addressed HandlerSandbox
	if err := json.Unmarshal(held.Sandbox, &addressed); err == nil && addressed.Name != "" {
		h.Sandbox = &addressed
	}
	return nil
}
