package scenario

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// place is where sandboxes run.
type place struct {
	name, words string
	short       int // turns of the short form
}

func (p place) turns(b *Bench) int { return b.turns(p.short) }

// look finds out which places the cluster has. A cluster that is not ours has at least its own nodes.
func (b *Bench) look(ctx context.Context) error {
	for _, p := range []struct {
		place
		nodes string
	}{
		{place{onFake, "on fake nodes", freshFakeTurns}, framework.FakeNodes},
		{place{onReal, "on the real node", freshRealTurns}, framework.RealNodes},
	} {
		nodes, err := b.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: p.nodes})
		if err != nil {
			return err
		}
		if len(nodes.Items) > 0 {
			b.found = append(b.found, p.place)
		}
	}
	if len(b.found) == 0 {
		b.found, b.anyNode = []place{{onReal, "on the cluster's nodes", freshRealTurns}}, true
	}
	return nil
}

// places are where sandboxes can run on this cluster.
func (b *Bench) places() []place { return b.found }

// place is where they run unless it matters: where none has to be started, if there is such a place.
func (b *Bench) place() string { return b.found[0].name }
