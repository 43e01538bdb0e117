package servingcert

import (
	"crypto/x509"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

const (
	// overlap is how long after its beginning a CA has its predecessors beside it in the caBundle. cert-controller dates a
	// CA back by an hour, so they stand for an hour: many times what every replica needs to serve the new certificate.
	overlap = 2 * time.Hour
	// mostPredecessors bounds the caBundle, whoever rotates how often.
	mostPredecessors = 4
)

// bundle gives the caBundle that trusts the current CA and, while that is young, those that the standing bundle holds:
// replicas may still serve a certificate of theirs. left is how long until the predecessors must go; 0 if there are none.
// What cannot be read in the standing bundle, and what has expired, is left out.
func bundle(standing, current []byte, now time.Time) (pem []byte, left time.Duration, err error) {
	cas, err := cert.ParseCertsPEM(current)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the CA: %w", err)
	}
	current, err = cert.EncodeCertificates(cas[0])
	if err != nil {
		return nil, 0, fmt.Errorf("encoding the CA: %w", err)
	}
	left = cas[0].NotBefore.Add(overlap).Sub(now)
	kept := predecessors(standing, cas[0], now)
	if left <= 0 || len(kept) == 0 {
		return current, 0, nil
	}
	rest, err := cert.EncodeCertificates(kept...)
	if err != nil {
		return nil, 0, fmt.Errorf("encoding the CA's predecessors: %w", err)
	}
	return append(current, rest...), left, nil
}

// predecessors are the CAs of a standing bundle other than the current one, the latest first.
func predecessors(standing []byte, current *x509.Certificate, now time.Time) []*x509.Certificate {
	all, err := cert.ParseCertsPEM(standing)
	if err != nil {
		return nil // empty, or not ours to understand
	}
	var kept []*x509.Certificate
	for _, ca := range all {
		if !ca.Equal(current) && now.Before(ca.NotAfter) && len(kept) < mostPredecessors {
			kept = append(kept, ca)
		}
	}
	return kept
}

// trusted says whether a client that trusts the bundle believes the certificate.
func trusted(bundle, certificate []byte, now time.Time) bool {
	chain, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = chain[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err == nil
}
