#!/usr/bin/env bash
# Regenerates everything that is made from the types in apis/: deep copies, conversions, defaults, validations,
# OpenAPI, the clientset with its listers, informers and apply configurations, and the neighbours' CRDs. Run it as `make generate`.
set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=github.com/altairalabs/omnia-sandboxes
cd "$root"
export GOBIN="$root/bin/codegen"

codegen=$(go list -m -f '{{.Dir}}' k8s.io/code-generator)
# shellcheck disable=SC1091
source "$codegen/kube_codegen.sh"

# validation-gen fails on the tags of metav1's own types, whose functions it does not find outside Kubernetes' tree. So it
# is shown the other packages only, and a field of a metav1 type says +k8s:opaqueType.
(
    KUBE_CODEGEN_READONLY_PKGS=(k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/types)
    kube::codegen::gen_helpers --boilerplate hack/boilerplate.go.txt apis
)

# The sandbox's fields use core/v1 types (resources, tolerations), whose models the served OpenAPI must hold as well.
kube::codegen::gen_openapi \
    --extra-pkgs k8s.io/api/core/v1 \
    --output-dir generated/openapi \
    --output-pkg "$module/generated/openapi" \
    --output-model-name-file zz_generated.model_name.go \
    --report-filename hack/openapi-violations.list --update-report \
    --boilerplate hack/boilerplate.go.txt \
    apis

kube::codegen::gen_client \
    --with-watch \
    --with-applyconfig \
    --output-dir generated \
    --output-pkg "$module/generated" \
    --boilerplate hack/boilerplate.go.txt \
    apis

# The neighbours' CRDs, for a cluster without Omnia. --modfile keeps the generator out of the product's go.mod.
go tool -modfile=hack/tools/dev/go.mod controller-gen crd paths=./apis/omnia/... output:crd:dir=manifests/omnia-crds
