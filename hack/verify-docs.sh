#!/usr/bin/env bash
# Says whether the API reference is up to date with the types.
set -o errexit -o nounset -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

"$root/hack/update-docs.sh" "$fresh"
diff -u "$root/docs/reference.md" "$fresh" || { echo "docs/reference.md is not up to date: run make generate"; exit 1; }
