package main

import "fmt"

// apiServer is kube-apiserver, with aggregation set up the way kubeadm does. It routes to the endpoints of an
// APIService's Service itself, so an aggregated server may run outside the cluster behind a hand-made EndpointSlice.
func (c *cluster) apiServer() component {
	return component{
		name: "kube-apiserver",
		args: []string{
			"--advertise-address=" + c.nodeIP,
			"--bind-address=" + c.nodeIP,
			fmt.Sprintf("--secure-port=%d", apiServerPort),
			"--tls-cert-file=" + c.pki("apiserver.crt"),
			"--tls-private-key-file=" + c.pki("apiserver.key"),
			"--client-ca-file=" + c.pki(clusterCA+".crt"),
			"--service-cluster-ip-range=" + serviceCIDR,
			"--authorization-mode=Node,RBAC",
			// The second is what a stricter cluster has: whoever sets an owner reference that blocks must be allowed to.
			"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
			"--allow-privileged=true",

			"--etcd-servers=" + etcdURL,
			"--etcd-prefix=/registry",
			"--etcd-cafile=" + c.pki(etcdCA+".crt"),
			"--etcd-certfile=" + c.pki("etcd-client.crt"),
			"--etcd-keyfile=" + c.pki("etcd-client.key"),

			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.pki("sa.pub"),
			"--service-account-signing-key-file=" + c.pki("sa.key"),

			// The node's name does not resolve, so exec and logs go to its address.
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority=" + c.pki(clusterCA+".crt"),
			"--kubelet-client-certificate=" + c.pki("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + c.pki("apiserver-kubelet-client.key"),

			"--requestheader-client-ca-file=" + c.pki(frontProxyCA+".crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-uid-headers=X-Remote-Uid",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + c.pki("front-proxy-client.key"),
			"--enable-aggregator-routing=true",
		},
		ready: c.healthy(c.server()+"/readyz", clusterCA, "admin"),
	}
}
