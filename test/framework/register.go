package framework

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/altairalabs/omnia-sandboxes/apis/sandbox/v1alpha1"
)

const (
	// groupPriority is above other projects' groups that serve sandboxclaims too.
	groupPriority   = 2000
	versionPriority = 15

	servicePort      = 443
	servicePortName  = "https"
	registerTimeout  = 60 * time.Second
	leaseFreeTimeout = 30 * time.Second
)

// APIServiceName names our version of our group to the aggregator.
var APIServiceName = v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.SchemeGroupVersion.Group

// register makes a Service without a selector, an EndpointSlice per process (a slice has one set of ports), and the
// APIService, and waits until the aggregator serves the group.
func (c *Cluster) register(ctx context.Context, s *Servers) error {
	if err := c.clearEndpoints(ctx, allEndpoints); err != nil {
		return err
	}
	if err := c.createService(ctx); err != nil {
		return err
	}
	for _, server := range s.List {
		if err := server.AddEndpoint(ctx); err != nil {
			return err
		}
	}
	if err := c.CreateAPIService(ctx, s.ca); err != nil {
		return err
	}
	return c.WaitServed(ctx)
}

// unregister removes the APIService, the Service and the EndpointSlices, in this order.
func (c *Cluster) unregister(ctx context.Context) error {
	err := c.Aggregator.ApiregistrationV1().APIServices().Delete(ctx, APIServiceName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing APIService %s: %w", APIServiceName, err)
	}
	err = c.Kube.CoreV1().Services(SystemNamespace).Delete(ctx, ServerName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the server's Service: %w", err)
	}
	return c.clearEndpoints(ctx, allEndpoints)
}

const (
	// allEndpoints are the EndpointSlices of the server's Service, madeEndpoints those that stand for processes of a set.
	allEndpoints  = discoveryv1.LabelServiceName + "=" + ServerName
	madeEndpoints = allEndpoints + ",!" + discoveryv1.LabelManagedBy
)

// clearEndpoints removes EndpointSlices of the server's Service, also another set's.
func (c *Cluster) clearEndpoints(ctx context.Context, which string) error {
	err := c.Kube.DiscoveryV1().EndpointSlices(SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: which})
	if err != nil {
		return fmt.Errorf("removing the server's EndpointSlices: %w", err)
	}
	return nil
}

// createService makes the Service that the APIService names. It has no selector, because its endpoints are host processes.
func (c *Cluster) createService(ctx context.Context) error {
	services := c.Kube.CoreV1().Services(SystemNamespace)
	if err := services.Delete(ctx, ServerName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("replacing the server's Service: %w", err)
	}
	_, err := services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: ServerName},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: servicePortName, Port: servicePort, Protocol: corev1.ProtocolTCP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the server's Service: %w", err)
	}
	return nil
}

// CreateAPIService makes the APIService, in place of one that is there. Without a CA its caBundle is for the servers to keep.
func (c *Cluster) CreateAPIService(ctx context.Context, ca []byte) error {
	services := c.Aggregator.ApiregistrationV1().APIServices()
	if err := services.Delete(ctx, APIServiceName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("replacing APIService %s: %w", APIServiceName, err)
	}
	_, err := services.Create(ctx, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: APIServiceName},
		Spec: apiregistrationv1.APIServiceSpec{
			Service:              &apiregistrationv1.ServiceReference{Namespace: SystemNamespace, Name: ServerName, Port: ptr.To[int32](servicePort)},
			Group:                v1alpha1.SchemeGroupVersion.Group,
			Version:              v1alpha1.SchemeGroupVersion.Version,
			CABundle:             ca,
			GroupPriorityMinimum: groupPriority,
			VersionPriority:      versionPriority,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making APIService %s: %w", APIServiceName, err)
	}
	return nil
}

// WaitServed waits until the aggregator says Available and answers for the group.
func (c *Cluster) WaitServed(ctx context.Context) error {
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, registerTimeout, true, func(ctx context.Context) (bool, error) {
		last = c.served(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for APIService %s to be Available: %w (%w)", APIServiceName, err, last)
	}
	return nil
}

func (c *Cluster) served(ctx context.Context) error {
	service, err := c.Aggregator.ApiregistrationV1().APIServices().Get(ctx, APIServiceName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !available(service) {
		return fmt.Errorf("not Available: %+v", service.Status.Conditions)
	}
	if err := c.Kube.Discovery().RESTClient().Get().AbsPath("/apis/" + v1alpha1.SchemeGroupVersion.String()).Do(ctx).Error(); err != nil {
		return err
	}
	if err := c.discovered(); err != nil {
		return err
	}
	return c.ownable(ctx)
}

// ownable says whether the cluster lets the server make claims own objects that block their deletion. The admission plugin
// that asks who may do so learns of a new group some seconds after everybody else, and refuses everything until then; but
// not the administrator, who may finalize anything.
func (c *Cluster) ownable(ctx context.Context) error {
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = serviceaccount.MakeUsername(SystemNamespace, ServerName)
	server, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = server.NetworkingV1().NetworkPolicies(SystemNamespace).Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "owned-",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxClaim", Name: "any", UID: "any", BlockOwnerDeletion: ptr.To(true),
		}},
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// discovered says whether the aggregator's own list of resources, which lags behind the APIService, has the group's.
func (c *Cluster) discovered() error {
	_, lists, err := c.Kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		if list.GroupVersion == v1alpha1.SchemeGroupVersion.String() {
			return nil
		}
	}
	return fmt.Errorf("%s is not in the aggregator's discovery yet", v1alpha1.SchemeGroupVersion)
}

func available(service *apiregistrationv1.APIService) bool {
	for _, condition := range service.Status.Conditions {
		if condition.Type == apiregistrationv1.Available {
			return condition.Status == apiregistrationv1.ConditionTrue
		}
	}
	return false
}

func endpointName(s *Server) string { return ServerName + "-" + strconv.Itoa(s.Index) }

func (c *Cluster) applyEndpoint(ctx context.Context, s *Server) error {
	_, err := c.Kube.DiscoveryV1().EndpointSlices(SystemNamespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: endpointName(s), Labels: map[string]string{discoveryv1.LabelServiceName: ServerName}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(servicePortName), Port: ptr.To(int32(s.Port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{c.Info.NodeIP}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("adding the endpoint of server %d: %w", s.Index, err)
	}
	return nil
}

func (c *Cluster) deleteEndpoint(ctx context.Context, s *Server) error {
	err := c.Kube.DiscoveryV1().EndpointSlices(SystemNamespace).Delete(ctx, endpointName(s), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the endpoint of server %d: %w", s.Index, err)
	}
	return nil
}

// LeaseHolder is who holds the Lease, as its server calls itself: its pod's name, or LeaseIdentity of a process. Empty if
// nobody does.
func (c *Cluster) LeaseHolder(ctx context.Context) (string, error) {
	lease, err := c.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, ServerName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// freeLease waits until no other server renews the Lease, which would keep our controllers from ever running, and removes
// it: a new server would otherwise watch a dead one's Lease for its whole length once more before it takes it.
func (c *Cluster) freeLease(ctx context.Context) error {
	leases := c.Kube.CoordinationV1().Leases(SystemNamespace)
	var holder string
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, leaseFreeTimeout, true, func(ctx context.Context) (bool, error) {
		lease, err := leases.Get(ctx, ServerName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		length := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		return holder == "" || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > length, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for Lease %s/%s, which %s holds: %w (end the sandbox server that somebody else runs on this cluster)",
			SystemNamespace, ServerName, holder, err)
	}
	if err := leases.Delete(ctx, ServerName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the Lease of a server that is gone: %w", err)
	}
	return nil
}
