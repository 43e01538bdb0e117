{{- define "gvDetails" -}}
{{- $gv := . -}}
{{- $kinds := list "SandboxClaim" "SandboxClass" "ClusterSandboxClass" "SandboxAcquire" "SandboxTouch" "SandboxRelease" -}}
<!-- Made from apis/sandbox/v1alpha1 by hack/update-docs.sh. Do not edit: run `make generate`. -->

# API reference: {{ $gv.GroupVersionString }}

The kinds of the `sandbox.omnia` group: a SandboxClaim asks for a sandbox, a class says what it gets, and acquire, touch
and release are requests that are answered and not stored.

A default is what the server fills in where a field is left out; a field without one stays unset. A status is written by
the server and its controller; what a request says in it, other than one to the status subresource, is dropped. Times are
RFC 3339 with microseconds, durations are written as `15m`, quantities as `500Mi`.

A list or watch of SandboxClaims may select by these fields: {{ template "selectors" }}.

## Index

| Kind | Resource | Scope | Short name |
| --- | --- | --- | --- |
| [SandboxClaim](#sandboxclaim) | `sandboxclaims`, `sandboxclaims/status` | namespaced | `sbclaim` |
| [SandboxClass](#sandboxclass) | `sandboxclasses` | namespaced | `sbc` |
| [ClusterSandboxClass](#clustersandboxclass) | `clustersandboxclasses` | cluster | `csbc` |
| [SandboxAcquire](#sandboxacquire) | `sandboxclaims/acquire` (create only) | namespaced | |
| [SandboxTouch](#sandboxtouch) | `sandboxclaims/touch` (create only) | namespaced | |
| [SandboxRelease](#sandboxrelease) | `sandboxclaims/release` (create only) | namespaced | |

The types of their fields:
{{ range $i, $type := $gv.SortedTypes }}
{{- if not (has $type.Name $kinds) }}
- [{{ $type.Name }}](#{{ lower $type.Name }})
{{- end }}
{{- end }}

The words that a person or a client compares against:

{{ template "wordsIndex" }}

## Kinds
{{ range $kinds }}
{{- template "type" ($gv.TypeForKind .) }}
{{- end }}
## Types
{{ range $gv.SortedTypes }}
{{- if not (has .Name $kinds) }}
{{- template "type" . }}
{{- end }}
{{- end }}
## Words

{{ template "words" }}
{{ end -}}
