// Package etcdtest gives the tests of a package one real etcd inside their process. It refuses to be more than that: who
// breaks an etcd, or starts it again, starts it by pkg/etcd.
package etcdtest

import (
	"context"
	"os"
	"testing"

	"github.com/altairalabs/omnia-sandboxes/pkg/etcd"
)

// Main runs a package's tests while an etcd of their own runs, which is put into server, and gives their exit code.
func Main(m *testing.M, server **etcd.Server) int {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if *server, err = etcd.Start(context.Background(), etcd.Config{Dir: dir, QuotaBytes: 1 << 30}); err != nil {
		panic(err)
	}
	defer (*server).Stop()
	return m.Run()
}
