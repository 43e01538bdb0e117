package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockTimeout is how long a set of servers waits for another one's tests to end: longer than the longest of them may run,
// which is test/property's hour.
const lockTimeout = 65 * time.Minute

// lock waits for its turn to run servers on this cluster. The kernel gives the lock back when the process ends.
func (c *Cluster) lock(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	path := filepath.Join(c.Info.Dir, "run", "servers.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		if !said {
			fmt.Fprintf(os.Stderr, "waiting for other sandbox servers on this cluster to end (%s)\n", path)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for %s: %w (another test or demo still runs)", path, ctx.Err()), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
