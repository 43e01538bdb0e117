package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// requestTimeout bounds one request to etcd or to the host cluster.
const requestTimeout = 10 * time.Second

// errUnreadable says that something else stands where a mark should.
var errUnreadable = errors.New("this is no mark of a store")

// inEtcd is a mark as etcd holds it. Without one the mark is nil and the revision 0, which is how etcd calls a key that is
// not there.
type inEtcd struct {
	mark     *Mark
	revision int64
}

// etcdMark reads and writes the mark in etcd.
type etcdMark struct {
	client *clientv3.Client
	key    string
}

func openEtcd(to storagebackend.TransportConfig, prefix string) (*etcdMark, error) {
	cfg := clientv3.Config{
		Endpoints: to.ServerList, DialTimeout: requestTimeout,
		// A member that is gone without a word is noticed, as the storage of claims notices it.
		DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: requestTimeout,
		Logger: zap.NewNop(), // what fails is logged by whoever asked
	}
	if to.CertFile != "" || to.KeyFile != "" || to.TrustedCAFile != "" {
		files := transport.TLSInfo{CertFile: to.CertFile, KeyFile: to.KeyFile, TrustedCAFile: to.TrustedCAFile}
		var err error
		if cfg.TLS, err = files.ClientConfig(); err != nil {
			return nil, fmt.Errorf("reading etcd's certificates: %w", err)
		}
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return &etcdMark{client: client, key: path.Join("/", prefix, "store")}, nil
}

// read gives the mark as a quorum of etcd has it now.
func (e *etcdMark) read(ctx context.Context) (inEtcd, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := e.client.Get(ctx, e.key)
	if err != nil {
		failed("etcd")
		return inEtcd{}, fmt.Errorf("reading the store's mark from etcd: %w", err)
	}
	if len(got.Kvs) == 0 {
		return inEtcd{}, nil
	}
	mark, err := decode(got.Kvs[0].Value)
	if err != nil {
		return inEtcd{}, fmt.Errorf("reading the store's mark from etcd: %s: %w (put back what stood there, or delete the key, to be told how to go on)", e.key, err)
	}
	return inEtcd{mark: &mark, revision: got.Kvs[0].ModRevision}, nil
}

// write puts a mark in the place of the one that was read. It says whether that still stood there.
func (e *etcdMark) write(ctx context.Context, before inEtcd, mark Mark) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	done, err := e.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(e.key), "=", before.revision)).
		Then(clientv3.OpPut(e.key, encode(mark))).
		Commit()
	if err != nil {
		failed("etcd")
		return false, fmt.Errorf("writing the store's mark to etcd: %w", err)
	}
	return done.Succeeded, nil
}

func encode(mark Mark) string {
	text, _ := json.Marshal(mark) // strings and a number: it cannot fail
	return string(text)
}

func decode(text []byte) (Mark, error) {
	var mark Mark
	if err := json.Unmarshal(text, &mark); err != nil {
		return mark, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if mark.ID == "" || mark.Generation < 1 {
		return mark, fmt.Errorf("%w: an id and a positive generation are missing in %q", errUnreadable, text)
	}
	return mark, nil
}
