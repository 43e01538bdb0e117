package meter

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/altairalabs/omnia-sandboxes/test/measure"
)

const (
	syncs     = 400
	syncsTake = 2 * time.Second // at most, plus the last one
	blockSize = 4096
)

// FsyncLatency is how long a write of 4 KiB takes until it is on disk, in a folder, as etcd writes its log: one after another
// into a file whose room was allocated before. It is from 400 writes, fewer if they take two seconds. The file is removed.
func FsyncLatency(dir string) (p50, p99 time.Duration, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("measuring the disk under %s: %w", dir, err)
		}
	}()
	file, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if err := fileutil.Preallocate(file, syncs*blockSize, true); err != nil {
		return 0, 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, 0, err
	}
	var times measure.Times
	block := make([]byte, blockSize)
	for began := time.Now(); len(times) < syncs && time.Since(began) < syncsTake; {
		wrote := time.Now()
		if _, err := file.Write(block); err != nil {
			return 0, 0, err
		}
		if err := fileutil.Fdatasync(file); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(wrote))
	}
	return times.At(0.5), times.At(0.99), nil
}
