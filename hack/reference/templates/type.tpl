{{- define "type" -}}
{{- $type := . }}
### {{ $type.Name }}

{{ template "prose" $type.Doc }}
{{- if $type.References }}

Appears in:
{{- range $i, $parent := $type.SortedReferences }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $parent }}{{ end }}.
{{- end }}
{{- if $type.Fields }}

| Field | Type | Required | Default | Description |
| --- | --- | --- | --- | --- |
{{- range $type.Fields }}
{{- if eq .Name "metadata" }}
| `apiVersion` | string | yes | | `sandbox.omnia/v1alpha1` |
| `kind` | string | yes | | `{{ $type.Name }}` |
{{- end }}
| `{{ .Name }}` | {{ template "jsonType" .Type }} | {{ template "required" . }} | {{ template "default" (printf "%s.%s" $type.Name .Name) }} | {{ template "cell" .Doc }} |
{{- end }}
{{- else }}

| Value | Meaning |
| --- | --- |
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ template "cell" .Doc }} |
{{- end }}
{{- end }}
{{ end -}}

{{- define "required" -}}
{{- if or (index .Markers "optional") (index .Markers "k8s:optional") }}no{{ else }}yes{{ end -}}
{{- end -}}

{{- /* jsonType is how a value looks on the wire. 3, 4 and 5 are the tool's kinds of map, pointer and slice. */ -}}
{{- define "jsonType" -}}
{{- $scalars := dict "MicroTime" "string, a time" "Duration" "string, a duration" "Quantity" "string, a quantity" "UID" "string" "PullPolicy" "string" -}}
{{- if eq .Kind 3 }}object of {{ template "jsonType" .ValueType }}
{{- else if eq .Kind 4 }}{{ template "jsonType" .UnderlyingType }}
{{- else if eq .Kind 5 }}array of {{ template "jsonType" .UnderlyingType }}
{{- else if hasKey $scalars .Name }}{{ get $scalars .Name }}
{{- else }}{{ markdownRenderTypeLink . }}
{{- end -}}
{{- end -}}

{{- /* prose and cell keep a comment's angle brackets from being read as HTML, cell also what would break a table. */ -}}
{{- define "prose" -}}{{ . | replace "<" "&lt;" | trim }}{{- end -}}
{{- define "cell" -}}{{ . | replace "<" "&lt;" | replace "|" "\\|" | replace "\n" " " | trim }}{{- end -}}
