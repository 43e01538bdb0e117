// Package inside runs sandbox servers inside a test's own process, for what no flag sets: their clock, or how often they
// look at their store. It refuses to be the common way: servers are processes where their flags will do.
package inside

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/altairalabs/omnia-sandboxes/pkg/apiserver"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// Server runs a server of its flags and of what is set besides.
func Server(set func(*apiserver.Options)) framework.RunServer {
	return func(ctx context.Context, args []string) error {
		options := apiserver.NewOptions()
		flags := pflag.NewFlagSet("sandbox-apiserver", pflag.ContinueOnError)
		options.AddFlags(flags)
		set(options)
		if err := errors.Join(flags.Parse(args), options.Complete(), options.Validate()); err != nil {
			return err
		}
		return options.Run(ctx)
	}
}

// LogTo has what the servers log go to a file among the cluster's logs, until the test and they have ended. It comes before
// they start.
func LogTo(t testing.TB, cluster *framework.Cluster, name string) {
	t.Helper()
	path := filepath.Join(cluster.Info.Dir, "log", name)
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(log)
	t.Cleanup(func() { // after the servers'
		klog.LogToStderr(true)
		klog.Flush()
		if err := log.Close(); err != nil {
			t.Errorf("closing the servers' log: %v", err)
		}
	})
	t.Logf("the servers' log: %s", path)
}
