package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/generated/clientset/versioned"
	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

const (
	// fieldLabel marks the namespaces of fields.
	fieldLabel = "sandbox.omnia/bench"
	// runtimeName is the AgentRuntime of every field.
	runtimeName = "bench"
	// builderName is the ServiceAccount that makes bare objects: an ordinary one, as the server's is, since an administrator's
	// requests would be exempt from Priority and Fairness.
	builderName = "builder"

	// The sandboxes that a field's ToolRegistry lists, by where they run.
	onFake   = "fake"
	onReal   = "real"
	onNoNode = "nowhere"

	// buildersAtOnce is how many bare sandboxes are being created at once, as many as the controller works on: two hundred at once
	// would time out in kube-apiserver, which allocates their Services' addresses one after the other.
	buildersAtOnce = 8

	// idleTimeout outlives any run. A touch is written once per half of it.
	idleTimeout = 4 * time.Hour
	// unlimited is a ceiling that no scenario meets.
	unlimited = 1 << 20
)

// field is a namespace of its own with an AgentRuntime, its classes and callers.
type field struct {
	*Bench
	namespace string
	runtime   string
	classes   map[string]*v1alpha1.SandboxClassSpec // by where they run

	agentConfig *rest.Config
	agent       versioned.Interface  // the runtime's own ServiceAccount, by the aggregator
	builder     kubernetes.Interface // who makes bare objects
	builders    chan struct{}        // holds one for each bare sandbox that is being created
	eyes        *eyes
	nudged      int // how often its runtime's idle timeout was changed
}

// openField makes a field whose runtime may hold so many sandboxes at once. Close it.
func (b *Bench) openField(ctx context.Context, maxConcurrent int32) (*field, error) {
	if err := b.cleared(ctx); err != nil {
		return nil, err
	}
	namespace, err := b.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "bench-", Labels: map[string]string{fieldLabel: "true", "pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("making a namespace: %w", err)
	}
	f := &field{Bench: b, namespace: namespace.Name, runtime: runtimeName, classes: map[string]*v1alpha1.SandboxClassSpec{},
		builders: make(chan struct{}, buildersAtOnce)}
	if err := f.furnish(ctx, maxConcurrent); err != nil {
		return nil, errors.Join(err, f.close(ctx))
	}
	if f.eyes, err = open(ctx, b.Cluster, f.namespace); err != nil {
		return nil, errors.Join(err, f.close(ctx))
	}
	return f, nil
}

// furnish makes what is in the namespace, and the callers.
func (f *field) furnish(ctx context.Context, maxConcurrent int32) error {
	nowhere := framework.MakeClass(onNoNode).With(func(s *v1alpha1.SandboxClassSpec) { s.NodeSelector = map[string]string{"sandbox.omnia/nowhere": ""} })
	registry := framework.MakeToolRegistry("tools", f.namespace)
	objects := []framework.Object{
		serviceAccount(f.namespace, runtimeName+"-facade"), serviceAccount(f.namespace, builderName),
		framework.MakeRuntime(runtimeName, f.namespace).ToolRegistry("tools").MaxConcurrent(maxConcurrent).MaxPerSession(unlimited).
			IdleTimeout(idleTimeout).ReleaseGrace(0).Obj(),
	}
	for name, class := range map[string]*framework.ClassWrapper{
		onFake: framework.MakeClass(onFake).OnFakeNodes(), onReal: framework.MakeClass(onReal).OnRealNodes(), onNoNode: nowhere,
	} {
		registry.SandboxOf(name, v1alpha1.SandboxClassKind, name).MaxInstances(unlimited)
		if f.image != "" {
			class.Image(f.image)
		}
		if f.anyNode && name == onReal {
			class.With(func(s *v1alpha1.SandboxClassSpec) { s.NodeSelector = nil })
		}
		made := class.In(f.namespace)
		f.classes[name] = &made.Spec
		objects = append(objects, made)
	}
	objects = append(objects, registry.Obj())
	objects = append(objects, allowed(f.namespace, runtimeName+"-facade",
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"sandboxclaims"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"sandboxclaims/status"}, Verbs: []string{"patch"}})...)
	objects = append(objects, allowed(f.namespace, builderName,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "pods"}, Verbs: []string{"create", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{appsv1.GroupName}, Resources: []string{"deployments"}, Verbs: []string{"create", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"networkpolicies"}, Verbs: []string{"create", "delete"}})...)
	for _, object := range objects {
		if err := f.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("making %T %s: %w", object, object.GetName(), err)
		}
	}
	var err error
	if f.agentConfig, err = f.AsServiceAccount(ctx, f.namespace, runtimeName+"-facade"); err != nil {
		return err
	}
	if f.agent, err = versioned.NewForConfig(f.agentConfig); err != nil {
		return err
	}
	builder, err := f.AsServiceAccount(ctx, f.namespace, builderName)
	if err != nil {
		return err
	}
	f.builder, err = kubernetes.NewForConfig(builder)
	return err
}

// direct is the runtime's ServiceAccount past the aggregator; nil if there is no way there.
func (f *field) direct() (versioned.Interface, error) {
	if f.Servers == nil {
		return nil, nil
	}
	return versioned.NewForConfig(f.Servers.List[0].Direct(f.agentConfig))
}

// cleared waits until nothing is left of earlier fields, whose end would burden the next.
func (b *Bench) cleared(ctx context.Context) error {
	for {
		left, err := b.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: fieldLabel})
		if err != nil || len(left.Items) == 0 {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// close removes the namespace, whose objects follow by themselves.
func (f *field) close(ctx context.Context) error {
	if f.eyes != nil {
		f.eyes.close()
	}
	ctx = context.WithoutCancel(ctx)
	return f.Kube.CoreV1().Namespaces().Delete(ctx, f.namespace, metav1.DeleteOptions{})
}

func serviceAccount(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// allowed gives a ServiceAccount what the rules say.
func allowed(namespace, account string, rules ...rbacv1.PolicyRule) []framework.Object {
	return []framework.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, Rules: rules},
		bound(namespace, account, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}),
	}
}

// bound gives a ServiceAccount a role.
func bound(namespace, account string, role rbacv1.RoleRef) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, RoleRef: role,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}}
}
