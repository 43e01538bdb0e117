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

   export KUBECONFIG=%[1]s PATH=%[2]s:$PATH

   kubectl explain sandboxclaim.spec --api-version=sandbox.omnia/v1alpha1
   kubectl get sbclaim -n %[3]s --watch
   kubectl create --raw %[4]s -f %[5]s
   kubectl describe sbclaim -n %[3]s
   kubectl delete pod -n %[3]s -l omnia.altairalabs.ai/sandbox-agent-runtime=%[6]s    # it comes back, at the same address
   kubectl edit csbc shell-small                                # reaches only sandboxes that are admitted later
   kubectl auth can-i create sandboxclaims.sandbox.omnia --subresource=acquire -n %[3]s --as=system:serviceaccount:%[3]s:%[7]s

   kubectl logs -n sandbox-system sandbox-apiserver-0            # the server's own
   kubectl delete pod -n sandbox-system sandbox-apiserver-0      # it comes back with its claims; the sandboxes go on

   go run ./hack/demo            # all of this again
   go run ./hack/demo stop       # end the server
   go run ./hack/cluster down    # end the cluster, and leave nothing
`, c.Info.Kubeconfig(), strings.TrimSuffix(c.Info.Bin("kubectl"), "/kubectl"), namespace, acquirePath, requestFile,
		runtimeName, facade)
}
