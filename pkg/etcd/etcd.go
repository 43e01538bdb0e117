// Package etcd runs an etcd inside the process, for an installation of one replica without an etcd of its own, makes
// snapshots of it while it runs, and restores them. Its clients reach it by a socket in its folder, so no port is open.
// It refuses to be a cluster: more than one replica needs --etcd-servers. And it refuses to restore over data, or under
// a server that runs.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// lockInterval is how often a process that waits for the folder looks whether it is free.
const lockInterval = 100 * time.Millisecond

// maxSocketPath is the longest path that a Unix socket can have on Linux, with its end.
const maxSocketPath = 107

// Config says where the data are, and how much there may be.
type Config struct {
	// Dir is the folder of the data. It is made if it does not exist. A second process on the same folder waits until the first has ended.
	Dir string
	// QuotaBytes is how large the database may grow before writes are refused.
	QuotaBytes int64
}

// Server is a running etcd.
type Server struct {
	etcd     *embed.Etcd
	lock     *fileutil.LockedFile
	endpoint string
}

// Start starts etcd and waits until it serves. Writes are synced to disk before they are answered.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := makeFolder(cfg.Dir)
	if err != nil {
		return nil, err
	}
	// etcd locks its data, but only after it has made its sockets, which an earlier process would unlink as it ends.
	klog.FromContext(ctx).V(2).Info("Waiting for the embedded etcd's folder", "dir", dir)
	lock, err := lockFolder(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("locking the embedded etcd's folder: %w", err)
	}
	server, err := serve(ctx, config(dir, cfg.QuotaBytes))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded etcd in %s: %w", dir, err), lock.Close())
	}
	klog.FromContext(ctx).Info("Embedded etcd is ready", "dir", dir)
	return &Server{etcd: server, lock: lock, endpoint: "unix://" + socket(dir)}, nil
}

// makeFolder makes the folder, and gives its whole path.
func makeFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the embedded etcd's folder: %w", err)
	}
	if len(socket(dir)) > maxSocketPath {
		return "", fmt.Errorf("the path of the embedded etcd's socket, %s, is longer than %d characters: choose a shorter folder", socket(dir), maxSocketPath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the embedded etcd's folder: %w", err)
	}
	return dir, nil
}

// serve starts etcd and waits until it is ready; its caller holds the folder's lock.
func serve(ctx context.Context, c *embed.Config) (*embed.Etcd, error) {
	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		server.Close()
		return nil, err
	case <-ctx.Done():
		server.Close()
		return nil, errors.Join(errors.New("stopped before the embedded etcd was ready"), ctx.Err())
	}
}

// lockFolder waits for its turn, and heeds the end of ctx meanwhile.
func lockFolder(ctx context.Context, dir string) (*fileutil.LockedFile, error) {
	var lock *fileutil.LockedFile
	err := wait.PollUntilContextCancel(ctx, lockInterval, true, func(context.Context) (bool, error) {
		var err error
		lock, err = fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY|os.O_CREATE, fileutil.PrivateFileMode)
		if errors.Is(err, fileutil.ErrLocked) {
			return false, nil
		}
		return err == nil, err
	})
	return lock, err
}

// socket is where clients reach the etcd of a folder; data is where it keeps what it stores.
func socket(dir string) string { return filepath.Join(dir, "client.sock") }
func data(dir string) string   { return filepath.Join(dir, "data") }

func config(dir string, quotaBytes int64) *embed.Config {
	c := embed.NewConfig()
	c.Name = "embedded"
	c.Dir = data(dir)
	c.QuotaBackendBytes = quotaBytes
	c.LogLevel = "warn"
	clients := []url.URL{{Scheme: "unix", Path: socket(dir)}}
	c.ListenClientUrls, c.AdvertiseClientUrls = clients, clients
	// It has no peers and listens for none: etcd would open an abstract socket, without a file's permissions, and could not
	// close it where the working folder is read-only. What it advertises only names it to itself.
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{{Scheme: "unix", Path: filepath.Join(dir, "peer.sock")}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}

// Endpoint is where clients reach the server.
func (s *Server) Endpoint() string { return s.endpoint }

// Failed gives an error if the server ends by itself.
func (s *Server) Failed() <-chan error { return s.etcd.Err() }

// Stop ends the server and releases its folder. Its clients must have stopped.
func (s *Server) Stop() {
	s.etcd.Close()
	if err := s.lock.Close(); err != nil {
		klog.Background().Error(err, "Unlocking the embedded etcd's folder")
	}
}
