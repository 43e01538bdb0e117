package framework

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"math/big"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// CA issues certificates for a test that plays whoever keeps them.
type CA struct {
	// PEM is its own certificate.
	PEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issuedLifetime outlives any test.
const issuedLifetime = 12 * time.Hour

// NewCA makes a CA.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	ca, err := newCA(name)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func newCA(name string) (*CA, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	ca := &CA{key: key}
	if ca.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key); err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	if ca.PEM, err = cert.EncodeCertificates(ca.cert); err != nil {
		return nil, fmt.Errorf("encoding a CA: %w", err)
	}
	return ca, nil
}

// Issue issues a certificate, and its key, with what the template says of its subject and use.
func (ca *CA) Issue(t testing.TB, template x509.Certificate) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := ca.issue(template)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

func (ca *CA) issue(template x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(issuedLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	issued, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading an issued certificate: %w", err)
	}
	if certPEM, err = cert.EncodeCertificates(issued); err != nil {
		return nil, nil, fmt.Errorf("encoding an issued certificate: %w", err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("encoding an issued key: %w", err)
	}
	return certPEM, keyPEM, nil
}

// issueFiles issues a certificate and writes it and its key.
func (ca *CA) issueFiles(template x509.Certificate, certFile, keyFile string) error {
	certPEM, keyPEM, err := ca.issue(template)
	if err != nil {
		return err
	}
	if err := cert.WriteCert(certFile, certPEM); err != nil {
		return err
	}
	return keyutil.WriteKey(keyFile, keyPEM)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}
