package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/altairalabs/omnia-sandboxes/hack/cluster/info"
)

// load imports image tarballs on the real node.
func load(_ context.Context, l layout, p *progress, tarballs []string) error {
	have, err := info.Load(l.dir())
	if err != nil {
		return err
	}
	if !have.RealNode {
		return errors.New("the cluster has no real node to load images on: run `go run ./hack/cluster up`")
	}
	for _, tarball := range tarballs {
		if err := p.step(filepath.Base(tarball), func() error { return importImage(l, tarball) }); err != nil {
			return err
		}
	}
	return nil
}
