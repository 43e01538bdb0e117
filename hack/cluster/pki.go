package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certLifetime outlasts any cluster, since each `up` from nothing makes new ones.
const certLifetime = 365 * 24 * time.Hour

// identity is a certificate with its key.
type identity struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// request asks a CA for a certificate.
type request struct {
	// name of the files, without suffix.
	name string
	// ca that signs, by the name of its files.
	ca string
	// user and groups are what Kubernetes reads from the subject.
	user   string
	groups []string
	// server names; a certificate with any may serve, one without may only be a client's.
	dns []string
	ips []string
}

// Names of the CAs. Three, as kubeadm has it: who may speak for others and who may read etcd is not left to the CA that
// signs every user.
const (
	clusterCA    = "ca"
	frontProxyCA = "front-proxy-ca"
	etcdCA       = "etcd-ca"
)

// requests are all certificates of a cluster whose node has the given address.
func requests(nodeIP string) []request {
	const masters = "system:masters"
	return []request{
		{name: "apiserver", ca: clusterCA, user: "kube-apiserver",
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local"},
			ips: []string{nodeIP, "127.0.0.1", apiServiceIP}},
		{name: "apiserver-kubelet-client", ca: clusterCA, user: "kube-apiserver-kubelet-client", groups: []string{masters}},
		{name: "kubelet-server", ca: clusterCA, user: "system:node:" + nodeName, groups: []string{"system:nodes"},
			dns: []string{nodeName}, ips: []string{nodeIP}},
		{name: "front-proxy-client", ca: frontProxyCA, user: "front-proxy-client"},
		{name: "etcd-server", ca: etcdCA, user: "etcd", dns: []string{"localhost"}, ips: []string{"127.0.0.1", nodeIP}},
		{name: "etcd-client", ca: etcdCA, user: "etcd-client"},

		{name: "admin", ca: clusterCA, user: "admin", groups: []string{masters}},
		{name: "kube-controller-manager", ca: clusterCA, user: "system:kube-controller-manager"},
		{name: "kube-scheduler", ca: clusterCA, user: "system:kube-scheduler"},
		{name: "kubelet", ca: clusterCA, user: "system:node:" + nodeName, groups: []string{"system:nodes"}},
		{name: "kube-proxy", ca: clusterCA, user: "system:kube-proxy"},
		{name: "kube-router", ca: clusterCA, user: "kube-router", groups: []string{masters}},
		{name: "kwok", ca: clusterCA, user: "kwok", groups: []string{masters}},
		{name: hostpathProvisioner, ca: clusterCA, user: hostpathProvisioner, groups: []string{masters}},
	}
}

// kubeconfigUsers are the certificates that become kubeconfigs.
var kubeconfigUsers = []string{"admin", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
	"kube-router", "kwok", hostpathProvisioner}

// writePKI makes all CAs, certificates and the key that signs service account tokens.
func writePKI(l layout, nodeIP string) error {
	cas := map[string]identity{}
	for _, name := range []string{clusterCA, frontProxyCA, etcdCA} {
		ca, err := newCA(name)
		if err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
		if err := ca.write(l, name); err != nil {
			return err
		}
		cas[name] = ca
	}
	for _, r := range requests(nodeIP) {
		id, err := sign(cas[r.ca], r, time.Now())
		if err != nil {
			return fmt.Errorf("making certificate %s: %w", r.name, err)
		}
		if err := id.write(l, r.name); err != nil {
			return err
		}
	}
	return writeTokenKey(l)
}

func newCA(name string) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	return identity{cert: ca, key: key}, err
}

// sign makes a certificate. client-go has no signing of its own, only self-signing.
func sign(ca identity, r request, now time.Time) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return identity{}, err
	}
	template := r.template(now)
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return identity{}, err
	}
	signed, err := x509.ParseCertificate(der)
	return identity{cert: signed, key: key}, err
}

// template is the certificate to sign, without its serial number.
func (r request) template(now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: r.user, Organization: r.groups},
		DNSNames:              r.dns,
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(certLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	for _, ip := range r.ips {
		t.IPAddresses = append(t.IPAddresses, net.ParseIP(ip))
	}
	if len(r.dns)+len(r.ips) > 0 { // etcd's server is its own client too, so serving does not replace the other use.
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return t
}

// write stores certificate and key as <name>.crt and <name>.key.
func (id identity) write(l layout, name string) error {
	certPEM, err := cert.EncodeCertificates(id.cert)
	if err != nil {
		return err
	}
	if err := cert.WriteCert(l.pki(name+".crt"), certPEM); err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(id.key)
	if err != nil {
		return err
	}
	return keyutil.WriteKey(l.pki(name+".key"), keyPEM)
}

// writeTokenKey makes the key pair that signs and verifies service account tokens.
func writeTokenKey(l layout) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := keyutil.WriteKey(l.pki("sa.key"), private); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return os.WriteFile(l.pki("sa.pub"), block, 0o644)
}
