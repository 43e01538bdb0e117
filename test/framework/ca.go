package framework

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
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

// NewCA makes a CA.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	ca := &CA{key: newKey(t)}
	var err error
	if ca.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: name}, ca.key); err != nil {
		t.Fatalf("making a CA: %v", err)
	}
	if ca.PEM, err = cert.EncodeCertificates(ca.cert); err != nil {
		t.Fatalf("encoding a CA: %v", err)
	}
	return ca
}

// Issue issues a certificate of an hour, and its key, with what the template says of its subject and use.
func (ca *CA) Issue(t testing.TB, template x509.Certificate) (certPEM, keyPEM []byte) {
	t.Helper()
	key := newKey(t)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, ca.cert, key.Public(), ca.key)
	if err != nil {
		t.Fatalf("issuing a certificate: %v", err)
	}
	issued, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("reading an issued certificate: %v", err)
	}
	if certPEM, err = cert.EncodeCertificates(issued); err != nil {
		t.Fatalf("encoding an issued certificate: %v", err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatalf("encoding an issued key: %v", err)
	}
	return certPEM, keyPEM
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return key
}
