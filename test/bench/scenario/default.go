package scenario

import (
	"context"
	"errors"
	"fmt"

	"github.com/altairalabs/omnia-sandboxes/test/report"
)

// playDefault measures new claims at once while kube-controller-manager asks at its own default rate, as on most clusters.
func playDefault(ctx context.Context, b *Bench) (out []report.Section, err error) {
	raised := b.Info.ControllerQPS
	if err := b.setControllerQPS(ctx, 0); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.setControllerQPS(context.WithoutCancel(ctx), raised)) }()
	f, err := b.openField(ctx, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	if err := f.collected(ctx); err != nil {
		return nil, err
	}
	section, err := f.manyFresh(ctx, b.places()[0])
	if err != nil {
		return nil, err
	}
	section.ID, section.Title = "default", section.Title+", at kube-controller-manager's default rate"
	section.About = fmt.Sprintf("kube-controller-manager asks its API server 20 times a second unless it is told otherwise, which is a Deployment's every step; everything else here was measured at %d.", raised)
	return []report.Section{section}, nil
}
