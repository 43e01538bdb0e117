package servingcert

import (
	"crypto/x509"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

// mostPredecessors bounds the caBundle, whoever rotates how often.
const mostPredecessors = 4

// bundle gives the caBundle that trusts the current CA first and, if predecessors may stand beside it, those that the
// standing bundle holds: replicas may still serve a certificate of theirs. alone says that there are none. What cannot be
// read in the standing bundle, and what has expired, is left out.
func bundle(standing, current []byte, beside bool, now time.Time) (pem []byte, alone bool, err error) {
	cas, err := cert.ParseCertsPEM(current)
	if err != nil {
		return nil, false, fmt.Errorf("reading the CA: %w", err)
	}
	current, err = cert.EncodeCertificates(cas[0])
	if err != nil {
		return nil, false, fmt.Errorf("encoding the CA: %w", err)
	}
	kept := predecessors(standing, cas[0], now)
	if !beside || len(kept) == 0 {
		return current, true, nil
	}
	rest, err := cert.EncodeCertificates(kept...)
	if err != nil {
		return nil, false, fmt.Errorf("encoding the CA's predecessors: %w", err)
	}
	return append(current, rest...), false, nil
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

// standsFirst says whether a caBundle begins with the CA.
func standsFirst(caBundle, ca []byte) bool {
	standing, err := cert.ParseCertsPEM(caBundle)
	if err != nil {
		return false
	}
	current, err := cert.ParseCertsPEM(ca)
	return err == nil && standing[0].Equal(current[0])
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
