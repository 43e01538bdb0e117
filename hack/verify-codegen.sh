#!/usr/bin/env bash
# Says whether what is generated is up to date. It generates in a copy, so that the tree is left as it is.
set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$root"
generated=(apis generated hack/openapi-violations.list manifests/omnia-crds)
cp -r go.mod go.sum apis generated hack manifests "$copy/"
mkdir -p "$copy/bin"
"$copy/hack/update-codegen.sh" >"$copy/log" 2>&1 || { cat "$copy/log"; exit 1; }
for path in "${generated[@]}"; do
    diff -ruN "$path" "$copy/$path" || { echo "$path is not up to date: run make generate"; exit 1; }
done
