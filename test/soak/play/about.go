package play

import (
	"fmt"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// Machine adds to what is known of the machine what is known of the cluster on it.
func (s *Soak) Machine(machine []report.Fact) ([]report.Fact, error) {
	version, err := s.Kube.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for Kubernetes' version: %w", err)
	}
	return append(machine,
		report.Fact{Name: "Kubernetes", Value: version.GitVersion},
		report.Fact{Name: "etcd", Value: "one member with fsync, shared by kube-apiserver and the sandbox servers"},
		report.Fact{Name: "Nodes", Value: fmt.Sprintf("%d fake", s.Info.FakeNodes)},
		report.Fact{Name: "Sandbox servers", Value: fmt.Sprintf("%d, on the same machine as everything else", servers)}), nil
}
