package v1alpha1

// ConditionSandboxesValid is the one condition of a ToolRegistry that this server writes. It is true while the classes of the
// registry's sandboxes exist and suit them, and each handler that addresses a sandbox finds it, and its port. A registry with
// neither sandboxes nor such handlers has no such condition.
const ConditionSandboxesValid = "SandboxesValid"

// Reasons of the SandboxesValid condition. With several faults it is the first one's, sandboxes before handlers; the message
// tells them all.
const (
	ReasonValid                 = "Valid"                 // True: nothing is wrong.
	ReasonClassNotFound         = "ClassNotFound"         // a sandbox's class does not exist, in the kind that it names.
	ReasonWorkspaceNotSupported = "WorkspaceNotSupported" // a sandbox has a targetPath or the session's workspace, and its class no filesystem.workspace.
	ReasonUnknownSandbox        = "UnknownSandbox"        // a handler addresses a sandbox that the registry does not declare.
	ReasonUnknownPort           = "UnknownPort"           // a handler addresses a port that its sandbox's class does not declare.
	ReasonAmbiguousPort         = "AmbiguousPort"         // a handler names no port, and its sandbox's class declares several.
)
