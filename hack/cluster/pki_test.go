package main

import (
	"crypto/x509"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

func requestNamed(t *testing.T, name string) request {
	t.Helper()
	for _, r := range requests("192.0.2.7") {
		if r.name == name {
			return r
		}
	}
	t.Fatalf("no certificate is called %s", name)
	return request{}
}

func TestAPIServerCertificate_AllItsNames(t *testing.T) {
	got := requestNamed(t, "apiserver").template(time.Now())
	for _, ip := range []string{"192.0.2.7", "127.0.0.1", apiServiceIP} {
		if !slices.ContainsFunc(got.IPAddresses, net.ParseIP(ip).Equal) {
			t.Errorf("address %s is missing", ip)
		}
	}
	if !slices.Contains(got.DNSNames, "kubernetes.default.svc") {
		t.Error("kubernetes.default.svc is missing")
	}
}

func TestTemplate_OnlyServersMayServe(t *testing.T) {
	for name, want := range map[string]bool{"apiserver": true, "etcd-server": true, "kubelet-server": true,
		"admin": false, "front-proxy-client": false, "etcd-client": false} {
		got := slices.Contains(requestNamed(t, name).template(time.Now()).ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		if got != want {
			t.Errorf("%s may serve: %v", name, got)
		}
	}
}

func TestAPIServiceIP_IsTheFirstOfItsRange(t *testing.T) {
	_, network, err := net.ParseCIDR(serviceCIDR)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(network.IP.To4())
	first[3]++
	if !first.Equal(net.ParseIP(apiServiceIP)) {
		t.Errorf("first address of %s is %s, not %s", serviceCIDR, first, apiServiceIP)
	}
}

func TestWritePKI_CertificatesVerifyAgainstTheirOwnCAOnly(t *testing.T) {
	l := layout{root: t.TempDir()}
	if err := writePKI(l, "192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	for _, r := range requests("192.0.2.7") {
		certs, err := cert.CertsFromFile(l.pki(r.name + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, ca := range []string{clusterCA, frontProxyCA, etcdCA} {
			pool, err := cert.NewPool(l.pki(ca + ".crt"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = certs[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			if (err == nil) != (ca == r.ca) {
				t.Errorf("%s against %s: %v", r.name, ca, err)
			}
		}
		info, err := os.Stat(l.pki(r.name + ".key"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("key of %s: %v, %v", r.name, info.Mode(), err)
		}
	}
}

func TestKubeconfigs_StandAlone(t *testing.T) {
	l := layout{root: t.TempDir()}
	if err := writePKI(l, "192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	if err := writeKubeconfigs(l, "https://192.0.2.7:6443"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l.dir("pki")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{l.adminKubeconfig(), l.kubeconfig("kubelet")} {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != "https://192.0.2.7:6443" || len(config.CAData) == 0 || len(config.KeyData) == 0 {
			t.Errorf("%s is not complete", file)
		}
	}
}
