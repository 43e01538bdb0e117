package scenario

import (
	"fmt"
	"time"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
	"github.com/altairalabs/omnia-sandboxes/test/meter"
	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// Machine adds to what is known of the machine what is known of the cluster on it.
func (b *Bench) Machine(machine []report.Fact) ([]report.Fact, error) {
	version, err := b.Kube.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking for Kubernetes' version: %w", err)
	}
	machine = append(machine, report.Fact{Name: "Kubernetes", Value: version.GitVersion})
	if b.Servers == nil {
		return append(machine, report.Fact{Name: "Cluster", Value: "another's: the machine above is the callers' alone"}), nil
	}
	p50, p99, err := meter.FsyncLatency(b.Info.Dir)
	if err != nil {
		return nil, err
	}
	nodes := fmt.Sprintf("%d fake", b.Info.FakeNodes)
	if b.Info.RealNode {
		nodes += ", 1 real"
	}
	return append(machine,
		report.Fact{Name: "Disk", Value: fmt.Sprintf("a 4 KiB write is on disk after %.2f ms (p50), %.2f ms (p99)", ms(p50), ms(p99))},
		report.Fact{Name: "etcd", Value: "one member with fsync, shared by kube-apiserver and the sandbox server"},
		report.Fact{Name: "Nodes", Value: nodes},
		report.Fact{Name: "kube-controller-manager", Value: fmt.Sprintf("--kube-api-qps=%d (its default is 20)", b.Info.ControllerQPS)},
		report.Fact{Name: "Sandbox servers", Value: "1, on the same machine as everything else"}), nil
}

func ms(d time.Duration) float64 { return measure.Milliseconds(d) }
