#!/usr/bin/env bash
# Writes the API reference from the types' comments, or to the file that is given. `make generate` runs it.
set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
out=${1:-docs/reference.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp hack/reference/templates/*.tpl "$work/"
go run ./hack/reference apis/sandbox/v1alpha1 >"$work/words.tpl"
# --modfile keeps the generator out of the product's go.mod.
go tool -modfile=hack/tools/docs/go.mod crd-ref-docs --log-level=ERROR --renderer=markdown \
    --config=hack/reference/config.yaml --templates-dir="$work" --source-path=apis/sandbox/v1alpha1 --output-path="$out"
