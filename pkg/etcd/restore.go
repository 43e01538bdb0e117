package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/client/pkg/v3/logutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap/zapcore"
	"k8s.io/utils/clock"
)

const (
	// lockPatience is for a server that is just ending to let go of the folder.
	lockPatience = 2 * time.Second
	// revisionBump is how far beyond the snapshot's the restored revision is, as etcd advises for Kubernetes: further than
	// anything can have been written since.
	revisionBump = 1_000_000_000
)

// RestoreConfig says where to restore.
type RestoreConfig struct {
	// Dir is the folder of the embedded etcd. It is made if it does not exist.
	Dir string
	// MoveExisting moves data that the folder holds aside, within it, where they would be refused else.
	MoveExisting bool
	// Clock tells the time that data which were moved aside are named after.
	Clock clock.PassiveClock
}

// Restored is what was restored.
type Restored struct {
	// Keys is how many keys there are.
	Keys int64
	// Revision is the store's. It is far beyond the snapshot's, so that none that was given out since names anything else.
	Revision int64
	// MovedTo is the folder of the data that were there before; empty if none were.
	MovedTo string
}

// Restore makes the folder of an embedded etcd of a snapshot. A server that is started on it holds exactly the keys of
// the snapshot. The folder has the whole of it or, after an error, what it had. No server may run on it.
func Restore(ctx context.Context, cfg RestoreConfig, snapshot io.Reader) (_ *Restored, err error) {
	dir, err := makeFolder(cfg.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := lockUnused(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !empty(data(dir)) && !cfg.MoveExisting {
		return nil, fmt.Errorf("%s holds data already: move them away, or let them be moved aside by --move-existing", data(dir))
	}
	beside := filepath.Join(dir, "restoring")
	if err := os.RemoveAll(beside); err != nil {
		return nil, fmt.Errorf("removing what an earlier restore left: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(beside))
		}
	}()
	restored, err := build(ctx, dir, beside, snapshot)
	if err != nil {
		return nil, err
	}
	if restored.MovedTo, err = swap(dir, beside, cfg.Clock.Now()); err != nil {
		return nil, fmt.Errorf("putting the restored data in place: %w", err)
	}
	return restored, nil
}

// lockUnused takes the folder's lock. Whoever restores wants to be told that a server runs, not to wait for its end.
func lockUnused(ctx context.Context, dir string) (*fileutil.LockedFile, error) {
	patience, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	lock, err := lockFolder(patience, dir)
	switch {
	case err == nil:
		return lock, nil
	case patience.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("a server runs on %s, or another restore: end it first", dir)
	default:
		return nil, fmt.Errorf("locking the embedded etcd's folder: %w", err)
	}
}

// empty says whether there is nothing in a folder, or no such folder.
func empty(dir string) bool { return !fileutil.Exist(dir) || fileutil.DirEmpty(dir) }

// build makes the data of an etcd of the snapshot, in the folder beside, and starts it once: what a server would stumble
// over is found now.
func build(ctx context.Context, dir, beside string, snapshot io.Reader) (*Restored, error) {
	database := filepath.Join(beside, "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the restored data: %w", err)
	}
	if err := receive(ctx, database, snapshot); err != nil {
		return nil, err
	}
	if err := adopt(database); err != nil {
		return nil, fmt.Errorf("making the snapshot the start of a new etcd: %w", err)
	}
	c := config(dir, 0)
	c.Dir, c.LogLevel = beside, "error"
	server, err := serve(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("starting etcd on the restored data: %w", err)
	}
	defer server.Close()
	client := v3client.New(server.Server)
	defer func() { _ = client.Close() }()
	all, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return nil, fmt.Errorf("reading the restored data: %w", err)
	}
	return &Restored{Keys: all.Count, Revision: all.Header.Revision}, nil
}

// receive writes the snapshot to a file, without the checksum that it ends with and is held to.
func receive(ctx context.Context, file string, snapshot io.Reader) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileutil.PrivateFileMode)
	if err != nil {
		return fmt.Errorf("making a file for the restored data: %w", err)
	}
	defer func() { _ = out.Close() }() // it is closed already, or its content is of no use
	in := heeding(ctx, snapshot)
	defer func() { _ = in.Close() }()
	content := newContent()
	size, err := io.Copy(io.MultiWriter(out, content), in)
	if err != nil {
		return fmt.Errorf("copying the snapshot: %w", err)
	}
	if err := content.check(); err != nil {
		return fmt.Errorf("the snapshot cannot be restored: %w: use another copy of it, or another snapshot", err)
	}
	if err := errors.Join(out.Truncate(size-int64(len(content.tail))), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("bringing the snapshot to the disk: %w", err)
	}
	return nil
}

// heeding is the reader until ctx ends. A read of standard input may last for ever, and nothing ends it.
func heeding(ctx context.Context, r io.Reader) *io.PipeReader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	return out
}

// adopt makes another etcd's database the start of a new one, as etcdutl's restore does: it is no member of any cluster
// yet, and no entry of a log was applied to it.
//
// Its revision is raised, and everything before is marked as compacted. An older revision would be given out a second
// time: a watch that stood at a later one would wait in silence until it is reached, and a write that names one as its
// precondition could overwrite something else. Now watches are told to begin anew, and such writes fail.
func adopt(database string) (err error) {
	logger, err := logutil.CreateDefaultZapLogger(zapcore.ErrorLevel)
	if err != nil {
		return err
	}
	b := backend.NewDefaultBackend(logger, database)
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := schema.NewMembershipBackend(logger, b).TrimMembershipFromBackend(); err != nil {
		return err
	}
	tx := b.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	for _, position := range [][]byte{schema.MetaConsistentIndexKeyName, schema.MetaTermKeyName, schema.MetaConfStateName} {
		tx.UnsafeDelete(schema.Meta, position)
	}
	var latest int64
	if err := tx.UnsafeForEach(schema.Key, func(key, _ []byte) error {
		latest = max(latest, mvcc.BytesToRev(key).Main)
		return nil
	}); err != nil {
		return err
	}
	latest += revisionBump
	tx.UnsafePut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: latest}, mvcc.NewRevBytes()), nil)
	mvcc.UnsafeSetScheduledCompact(tx, latest)
	return nil
}

// swap puts what was built in the place of the data, and moves what was there aside.
func swap(dir, beside string, now time.Time) (movedTo string, err error) {
	if empty(data(dir)) { // an etcd that ended before it wrote anything leaves a folder
		if err := os.Remove(data(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	} else {
		movedTo = data(dir) + ".before-" + now.UTC().Format("20060102T150405Z")
		if fileutil.Exist(movedTo) {
			return "", fmt.Errorf("%s exists: try again in a second", movedTo)
		}
		if err := os.Rename(data(dir), movedTo); err != nil {
			return "", err
		}
	}
	if err := os.Rename(beside, data(dir)); err != nil {
		if movedTo != "" {
			err = errors.Join(err, os.Rename(movedTo, data(dir)))
		}
		return "", err
	}
	return movedTo, syncFolder(dir)
}
