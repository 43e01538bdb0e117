package framework

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
)

const (
	// LabelTest marks the namespaces of tests.
	LabelTest = "sandbox.omnia/test"

	podSecurityEnforce = "pod-security.kubernetes.io/enforce"
	cleanupTimeout     = 30 * time.Second
)

// Namespace makes a namespace of the test's own, in which only restricted pods may run, and gives its name. It is
// deleted with the test; if the test failed, what was in it is shown first.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespace, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		Labels:       map[string]string{LabelTest: "true", podSecurityEnforce: "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	name := namespace.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if t.Failed() {
			t.Log(c.Describe(ctx, name))
		}
		err := c.Kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", name, err)
		}
	})
	return name
}

// Describe shows a namespace's claims, what was built from them, and its events.
func (c *Cluster) Describe(ctx context.Context, namespace string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "namespace %s:\n", namespace)
	for _, args := range [][]string{
		{"get", "sandboxclaims.sandbox.omnia", "--output", "yaml"},
		{"get", "deployments,pods,services,networkpolicies", "--output", "wide"},
		{"get", "events", "--sort-by", ".lastTimestamp"},
	} {
		out, err := c.Kubectl(ctx, append([]string{"--namespace", namespace}, args...)...)
		fmt.Fprintln(&text, out)
		if err != nil {
			fmt.Fprintln(&text, err)
		}
	}
	return text.String()
}

// ServiceAccount makes a ServiceAccount, if it is not there yet.
func (c *Cluster) ServiceAccount(t testing.TB, namespace, name string) {
	t.Helper()
	_, err := c.Kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("making ServiceAccount %s/%s: %v", namespace, name, err)
	}
}

// Create makes objects of any kind that the cluster's client knows.
func (c *Cluster) Create(t testing.TB, objects ...Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("making %T %s: %v", object, object.GetName(), err)
		}
	}
}

// CreateClasses makes cluster-wide classes and deletes them with the test.
func (c *Cluster) CreateClasses(t testing.TB, classes ...*ClassWrapper) {
	t.Helper()
	for _, class := range classes {
		object := class.Cluster()
		c.Create(t, object)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
			defer cancel()
			if err := c.Client.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("deleting ClusterSandboxClass %s: %v", object.Name, err)
			}
		})
	}
}

// Agent makes what an agent runtime needs in a namespace to acquire shell/<instance>: its own ServiceAccount, a ToolRegistry
// whose sandbox shell is of a ClusterSandboxClass, three to a session, and the AgentRuntime. It gives the clientset of that
// ServiceAccount.
func (c *Cluster) Agent(t testing.TB, namespace, runtime, clusterClass string) versioned.Interface {
	t.Helper()
	account := runtime + "-facade"
	c.ServiceAccount(t, namespace, account)
	c.Create(t,
		MakeToolRegistry("tools", namespace).Sandbox("shell", clusterClass).MaxInstances(3).Obj(),
		MakeRuntime(runtime, namespace).ToolRegistry("tools").Obj())
	config, err := c.AsServiceAccount(t.Context(), namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	set, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatalf("making the clientset of ServiceAccount %s/%s: %v", namespace, account, err)
	}
	return set
}
