package main

import "fmt"

// etcdURL is where kube-apiserver (under /registry) and the sandbox server (under a prefix of its own) keep objects.
var etcdURL = fmt.Sprintf("https://127.0.0.1:%d", etcdPort)

// etcdPodURL is where pods reach the same etcd, for a sandbox server that runs as pods.
func (c *cluster) etcdPodURL() string { return fmt.Sprintf("https://%s:%d", c.nodeIP, etcdPort) }

// etcd is a single member. Writes are synced as in a real cluster, so that what a test measures means something.
func (c *cluster) etcd() component {
	peer := fmt.Sprintf("http://127.0.0.1:%d", etcdPeerPort)
	return component{
		name: "etcd",
		args: []string{
			"--name=omnia",
			"--data-dir=" + c.state("etcd"),
			"--listen-client-urls=" + etcdURL + "," + c.etcdPodURL(),
			"--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=omnia=" + peer,
			"--cert-file=" + c.pki("etcd-server.crt"),
			"--key-file=" + c.pki("etcd-server.key"),
			"--client-cert-auth",
			"--trusted-ca-file=" + c.pki(etcdCA+".crt"),
			"--quota-backend-bytes=4294967296",
			"--log-level=warn",
		},
		ready: c.healthy(etcdURL+"/health", etcdCA, "etcd-client"),
	}
}
