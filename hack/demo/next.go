package main

import (
	"fmt"
	"strings"

	"github.com/altairalabs/omnia-sandboxes/test/framework"
)

// next ends the story with what a person can try by hand. Everything is left as it is for that.
func next(s *story, c *framework.Cluster) {
	fmt.Fprintf(s.out, `
What to try next, in this folder. The cluster and the server go on.

   export KUBECONFIG=%s PATH=%s:$PATH

   kubectl explain sandboxclaim.spec --api-version=sandbox.omnia/v1alpha1
   kubectl get sbclaim -n %s --watch
   kubectl create --raw %s -f %s
   kubectl describe sbclaim -n %s
   kubectl delete pod -n %s -l omnia.altairalabs.ai/sandbox-agent-runtime=%s    # it comes back, at the same address
   kubectl edit csbc shell-small                                # reaches only sandboxes that are admitted later
   kubectl auth can-i create sandboxclaims/acquire --as=system:serviceaccount:%s:%s

   go run ./hack/demo            # all of this again
   go run ./hack/demo stop       # end the server
   go run ./hack/cluster down    # end the cluster, and leave nothing
`, c.Info.Kubeconfig(), strings.TrimSuffix(c.Info.Bin("kubectl"), "/kubectl"), namespace, acquirePath, requestFile,
		namespace, namespace, runtimeName, namespace, facade)
}
