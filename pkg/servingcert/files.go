package servingcert

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// pair is a certificate with its key.
type pair struct{ cert, key []byte }

// usable says whether there are both, and fit each other.
func (p pair) usable() bool {
	_, err := tls.X509KeyPair(p.cert, p.key)
	return err == nil
}

func (p pair) equal(other pair) bool {
	return bytes.Equal(p.cert, other.cert) && bytes.Equal(p.key, other.key)
}

// Files is the folder of the pair that the server serves, under the names of a TLS Secret's keys. The server watches both.
type Files string

// CertFile is the path of the certificate.
func (f Files) CertFile() string { return filepath.Join(string(f), corev1.TLSCertKey) }

// KeyFile is the path of its key.
func (f Files) KeyFile() string { return filepath.Join(string(f), corev1.TLSPrivateKeyKey) }

// read gives what is served; nothing usable if nothing is.
func (f Files) read() (pair, error) {
	var out pair
	for path, into := range map[string]*[]byte{f.CertFile(): &out.cert, f.KeyFile(): &out.key} {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return pair{}, fmt.Errorf("reading the served certificate: %w", err)
		}
		*into = content
	}
	return out, nil
}

// write replaces what is served. The server keeps the pair that it has until both files fit each other again.
func (f Files) write(p pair) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("making the folder of the serving certificate: %w", err)
	}
	if err := replace(f.KeyFile(), p.key); err != nil {
		return err
	}
	return replace(f.CertFile(), p.cert)
}

// replace gives a file its new content as a whole: no reader sees half of it.
func replace(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return fmt.Errorf("writing the serving certificate: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("putting the serving certificate into place: %w", err)
	}
	return nil
}
