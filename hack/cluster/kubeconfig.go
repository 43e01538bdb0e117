package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs writes one for each component and the admin's, certificates embedded so that each stands alone.
func writeKubeconfigs(l layout, server string) error {
	for _, user := range kubeconfigUsers {
		config, err := newKubeconfig(l, server, user)
		if err != nil {
			return fmt.Errorf("making kubeconfig of %s: %w", user, err)
		}
		file := l.kubeconfig(user)
		if user == "admin" {
			file = l.adminKubeconfig()
		}
		if err := clientcmd.WriteToFile(*config, file); err != nil {
			return err
		}
	}
	return nil
}

func newKubeconfig(l layout, server, user string) (*clientcmdapi.Config, error) {
	var contents [3][]byte
	for i, file := range []string{clusterCA + ".crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(l.pki(file))
		if err != nil {
			return nil, err
		}
		contents[i] = data
	}
	const name = "omnia-cluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: contents[0]}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return config, nil
}

// adminClient talks to kube-apiserver as cluster-admin.
func adminClient(l layout) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.adminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the admin's kubeconfig: %w", err)
	}
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // Whatever proxy the shell names.
	config.QPS, config.Burst = 500, 1000                                     // Thousands of fake nodes may be asked for.
	return kubernetes.NewForConfig(config)
}
