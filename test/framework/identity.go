package framework

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

const (
	// callerTokenLifetime outlives any test.
	callerTokenLifetime = 12 * time.Hour
	// serverTokenLifetime outlives a demo that is left running for a while.
	serverTokenLifetime = 90 * 24 * time.Hour
)

// AsServiceAccount gives a config that is the ServiceAccount, by a token that kube-apiserver issued for it, as a pod has
// one: not impersonation. The ServiceAccount must exist.
func (c *Cluster) AsServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.token(ctx, namespace, name, callerTokenLifetime)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token
	return tuned(config), nil
}

// token asks for a ServiceAccount's token.
func (c *Cluster) token(ctx context.Context, namespace, name string, lifetime time.Duration) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lifetime.Seconds())),
	}}
	answer, err := c.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s (create it first): %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}

// WriteKubeconfig writes a kubeconfig of a ServiceAccount, for a process or for kubectl.
func (c *Cluster) WriteKubeconfig(ctx context.Context, file, namespace, name string) error {
	return c.writeKubeconfig(ctx, file, namespace, name, callerTokenLifetime)
}

func (c *Cluster) writeKubeconfig(ctx context.Context, file, namespace, name string, lifetime time.Duration) error {
	token, err := c.token(ctx, namespace, name, lifetime)
	if err != nil {
		return err
	}
	const only = "local"
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{only: {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData, CertificateAuthority: c.Config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{only: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{only: {Cluster: only, AuthInfo: only, Namespace: namespace}},
		CurrentContext: only,
	}
	if err := clientcmd.WriteToFile(config, file); err != nil {
		return fmt.Errorf("writing a kubeconfig of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}
