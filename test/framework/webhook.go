package framework

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

// Webhook serves an admission webhook from the test's own process until the test ends, and gives what leads to it. The
// sandbox servers are processes of the same host, so they reach it on the node's address.
func (c *Cluster) Webhook(t testing.TB, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	address, ca := c.ServeTLS(t, review(answer), tls.NoClientCert)
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(address + "/"), CABundle: ca}
}

// ServeTLS serves HTTPS on the node's address from the test's own process until the test ends, and gives its URL and the
// CA of its certificate.
func (c *Cluster) ServeTLS(t testing.TB, handler http.Handler, clients tls.ClientAuthType) (address string, ca []byte) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey(c.Info.NodeIP, []net.IP{net.ParseIP(c.Info.NodeIP)}, nil)
	if err != nil {
		t.Fatalf("making a serving certificate: %v", err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatalf("reading a serving certificate: %v", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Info.NodeIP, "0"))
	if err != nil {
		t.Fatalf("listening on the node's address: %v", err)
	}
	server := httptest.NewUnstartedServer(handler)
	if err := server.Listener.Close(); err != nil { // the one that httptest opened on localhost
		t.Fatalf("closing a listener: %v", err)
	}
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clients, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, chain
}

// review answers AdmissionReviews.
func review(answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Request == nil {
			http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
			return
		}
		told := admissionv1.AdmissionReview{TypeMeta: asked.TypeMeta, Response: answer(asked.Request)}
		told.Response.UID = asked.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(told) // Whoever asked sees the broken answer.
	})
}

// CreateUntilEnd makes objects of the whole cluster and deletes them with the test.
func (c *Cluster) CreateUntilEnd(t testing.TB, objects ...Object) {
	t.Helper()
	for _, object := range objects {
		c.Create(t, object)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
			defer cancel()
			if err := c.Client.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("deleting %T %s: %v", object, object.GetName(), err)
			}
		})
	}
}

// EveryoneWrites lets every caller who is known do anything to a namespace's claims and their status, so that what is
// refused to them is not RBAC's refusal.
func (c *Cluster) EveryoneWrites(t testing.TB, namespace string) {
	t.Helper()
	const name = "everyone-writes"
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	c.Create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"sandboxclaims", "sandboxclaims/status"}, Verbs: []string{rbacv1.VerbAll},
	}}}, &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.AllAuthenticated}},
	})
	// The sandbox servers remember a refusal for a while: let none happen before the cluster knows better.
	review := &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec: authorizationv1.SubjectAccessReviewSpec{User: name, Groups: []string{user.AllAuthenticated}, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: v1alpha1.SchemeGroupVersion.Group, Resource: "sandboxclaims"}},
	}
	Eventually(t, NoticeTimeout, "everyone may write claims", func(ctx context.Context) (bool, error) {
		answer, err := c.Kube.AuthorizationV1().LocalSubjectAccessReviews(namespace).Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}, func(allowed bool) bool { return allowed })
}
