package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// sectorSize divides the size of every database of etcd's, and leaves a snapshot's checksum as the remainder.
const sectorSize = 512

// Summary is what is said of a snapshot once it is made.
type Summary struct {
	// Bytes is the file's size.
	Bytes int64
	// SHA256 is the file's, as sha256sum says it: a copy that has another did not arrive whole.
	SHA256 string
}

// Snapshot writes all that the embedded etcd in dir holds at one moment to w, while it runs and serves on. What is
// written ends with etcd's own checksum of it, which Restore holds it to.
func Snapshot(ctx context.Context, dir string, w io.Writer) (Summary, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Summary{}, fmt.Errorf("finding the embedded etcd's folder: %w", err)
	}
	// The client would try again for a long time, and then not say why.
	probe, err := (&net.Dialer{}).DialContext(ctx, "unix", socket(dir))
	if err != nil {
		return Summary{}, fmt.Errorf("no server runs an embedded etcd in %s: give the folder of one that does, where it runs: %w", dir, err)
	}
	_ = probe.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + socket(dir)}, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return Summary{}, fmt.Errorf("reaching the embedded etcd in %s: %w", dir, err)
	}
	defer func() { _ = client.Close() }()
	answer, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return Summary{}, fmt.Errorf("asking the embedded etcd in %s for a snapshot: %w", dir, err)
	}
	defer func() { _ = answer.Snapshot.Close() }()
	whole, content := sha256.New(), newContent()
	size, err := io.Copy(io.MultiWriter(w, whole, content), answer.Snapshot)
	if err != nil {
		return Summary{}, fmt.Errorf("writing a snapshot of the embedded etcd: %w", err)
	}
	if err := content.check(); err != nil {
		return Summary{}, fmt.Errorf("reading a snapshot of the embedded etcd: %w", err)
	}
	return Summary{Bytes: size, SHA256: hex.EncodeToString(whole.Sum(nil))}, nil
}

// SnapshotFile is Snapshot into a new file. The file has its name only when it is whole, and on the disk.
func SnapshotFile(ctx context.Context, dir, file string) (summary Summary, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return Summary{}, errors.Join(fmt.Errorf("%s exists: name another file, or move that one away", file), err)
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".part-")
	if err != nil {
		return Summary{}, fmt.Errorf("making the snapshot's file: %w", err)
	}
	defer func() {
		_ = part.Close() // it is closed already, or its content is of no use
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	if summary, err = Snapshot(ctx, dir, part); err != nil {
		return Summary{}, err
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return Summary{}, fmt.Errorf("bringing the snapshot to the disk: %w", err)
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return Summary{}, fmt.Errorf("naming the snapshot's file: %w", err)
	}
	if err := syncFolder(filepath.Dir(file)); err != nil {
		return Summary{}, fmt.Errorf("bringing the snapshot's name to the disk: %w", err)
	}
	return summary, nil
}

// syncFolder brings the names in a folder to the disk.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// content holds what is written to it to the checksum that it ends with.
type content struct {
	size int64
	hash hash.Hash // of all but the tail
	tail []byte    // the last of it, which is the checksum once all is written
}

func newContent() *content { return &content{hash: sha256.New()} }

// Write implements io.Writer.
func (c *content) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	c.tail = append(c.tail, p...)
	if more := len(c.tail) - sha256.Size; more > 0 {
		c.hash.Write(c.tail[:more])
		c.tail = append(c.tail[:0], c.tail[more:]...)
	}
	return len(p), nil
}

// check says what is wrong with what was written.
func (c *content) check() error {
	if c.size <= sha256.Size || c.size%sectorSize != sha256.Size {
		return fmt.Errorf("its %d bytes do not end with a checksum: it was cut off, or is no snapshot of an etcd", c.size)
	}
	if !bytes.Equal(c.hash.Sum(nil), c.tail) {
		return errors.New("it is not what the checksum at its end was made from: it was damaged or altered")
	}
	return nil
}
