// Package sandboxclaim is the registry of SandboxClaim: its rules (strategy.go), its storage (storage.go), its columns
// (table.go), and the three actions that agents call on it (acquire.go, touch.go, release.go). It answers requests and
// writes its own etcd alone: it refuses to build sandboxes, which is the controller's, and to decide what is due, which
// is pkg/lifecycle's.
package sandboxclaim
