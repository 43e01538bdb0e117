package sandboxclaim

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	omniav1alpha1 "github.com/altairalabs/omnia-sandboxes/apis/omnia/v1alpha1"
	"github.com/altairalabs/omnia-sandboxes/apis/sandbox"
)

// Neighbours reads the neighbours' objects. A NotFound is only given when a live read confirms it.
type Neighbours interface {
	// AgentRuntime reads a runtime.
	AgentRuntime(ctx context.Context, namespace, name string) (*omniav1alpha1.AgentRuntime, error)
	// ToolRegistry reads the registry that the runtime refers to; NotFound too if it refers to none.
	ToolRegistry(ctx context.Context, runtime *omniav1alpha1.AgentRuntime) (*omniav1alpha1.ToolRegistry, error)
	// ServiceAccount is the name of the ServiceAccount that the runtime's pods run as.
	ServiceAccount(ctx context.Context, runtime *omniav1alpha1.AgentRuntime) (string, error)
}

// callers answers whose runtime a caller may speak for: RBAC alone says who may call acquire at all, and is usually
// granted to every ServiceAccount.
type callers struct {
	neighbours Neighbours
	authorizer authorizer.Authorizer
}

// speaksFor reads the runtime if the caller speaks for it. A runtime that does not exist is NotFound to whoever may speak
// for it, and Forbidden to everybody else.
func (c *callers) speaksFor(ctx context.Context, namespace, runtimeName string) (*omniav1alpha1.AgentRuntime, error) {
	runtime, err := c.speaksForWhatIsLeft(ctx, namespace, runtimeName)
	if err == nil && runtime == nil {
		return nil, noSuchRuntime(runtimeName)
	}
	return runtime, err
}

// speaksForWhatIsLeft reads the runtime if the caller is its own ServiceAccount, or is allowed the verb acquire on it. It
// gives nil, and no error, if the runtime is gone and the caller is allowed to speak for it still.
func (c *callers) speaksForWhatIsLeft(ctx context.Context, namespace, runtimeName string) (*omniav1alpha1.AgentRuntime, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("the request names no caller")
	}
	runtime, missing := c.neighbours.AgentRuntime(ctx, namespace, runtimeName)
	if missing != nil && !apierrors.IsNotFound(missing) {
		return nil, fmt.Errorf("reading AgentRuntime %s/%s: %w", namespace, runtimeName, missing)
	}
	if missing != nil {
		runtime = nil
	} else {
		own, err := c.neighbours.ServiceAccount(ctx, runtime)
		if err != nil {
			return nil, fmt.Errorf("finding the ServiceAccount of AgentRuntime %s/%s: %w", namespace, runtimeName, err)
		}
		if serviceaccount.MatchesUsername(namespace, own, caller.GetName()) {
			return runtime, nil
		}
	}
	allowed, err := c.allowed(ctx, caller, "acquire", omniav1alpha1.GroupName, "agentruntimes", namespace, runtimeName)
	if err != nil {
		return nil, err
	}
	if !allowed {
		return nil, notItsCaller(caller, namespace, runtimeName)
	}
	return runtime, nil
}

func noSuchRuntime(name string) error {
	return apierrors.NewNotFound(omniav1alpha1.Resource("agentruntimes"), name)
}

// mayGetClaims says whether the caller may know which claims there are.
func (c *callers) mayGetClaims(ctx context.Context, namespace, name string) (bool, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return false, nil
	}
	return c.allowed(ctx, caller, "get", sandbox.GroupName, "sandboxclaims", namespace, name)
}

func (c *callers) allowed(ctx context.Context, caller user.Info, verb, group, resource, namespace, name string) (bool, error) {
	decision, _, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: verb, APIGroup: group, APIVersion: "*", Resource: resource, Namespace: namespace, Name: name, ResourceRequest: true,
	})
	if err != nil && decision != authorizer.DecisionAllow {
		return false, apierrors.NewInternalError(fmt.Errorf("asking whether %s may %s %s %s/%s: %w", caller.GetName(), verb, resource, namespace, name, err))
	}
	return decision == authorizer.DecisionAllow, nil
}

func notItsCaller(caller user.Info, namespace, runtimeName string) error {
	return apierrors.NewForbidden(omniav1alpha1.Resource("agentruntimes"), runtimeName, fmt.Errorf(
		"%q is not the ServiceAccount of AgentRuntime %s/%s: call as it, or ask for the verb acquire on that agentruntimes.%s object",
		caller.GetName(), namespace, runtimeName, omniav1alpha1.GroupName))
}

// foreignOrUnknown is what whoever may not get claims is told of a claim that is not its own, whether or not it exists.
var errForeignOrUnknown = errors.New("no such claim, or not one of a runtime that you may speak for")

func foreignOrUnknown(name string) error {
	return apierrors.NewForbidden(sandbox.Resource("sandboxclaims"), name, errForeignOrUnknown)
}
