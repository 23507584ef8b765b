{{/* One value. Whole numbers stay whole: a large one would become 1e+06. Text in quotes needs quotes and backslashes escaped. */}}
{{- define "openstack-ccm.cloudConfigValue" -}}
{{- $text := toString . -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{- $text = int64 . | toString -}}{{- end -}}
{{- end -}}
"{{ $text | replace "\\" "\\\\" | replace "\"" "\\\"" | replace "\n" "\\n" | replace "\t" "\\t" }}"
{{- end -}}

{{/* One section: a line for each key, and a line for each entry of a list. */}}
{{- define "openstack-ccm.cloudConfigSection" -}}
[{{ .name }}]
{{- range $key, $value := .values }}
{{- if kindIs "slice" $value }}
{{- range $value }}
{{ $key }} = {{ include "openstack-ccm.cloudConfigValue" . }}
{{- end }}
{{- else }}
{{ $key }} = {{ include "openstack-ccm.cloudConfigValue" $value }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The text of cloud.conf. */}}
{{- define "openstack-ccm.cloudConfig" -}}
{{- if .Values.cloudConfigContents -}}
{{ .Values.cloudConfigContents }}
{{- else -}}
{{- $sections := list
  (dict "name" "Global" "values" .Values.cloudConfig.global)
  (dict "name" "Networking" "values" .Values.cloudConfig.networking)
  (dict "name" "LoadBalancer" "values" .Values.cloudConfig.loadBalancer)
  (dict "name" "BlockStorage" "values" .Values.cloudConfig.blockStorage)
  (dict "name" "Metadata" "values" .Values.cloudConfig.metadata)
  (dict "name" "Route" "values" .Values.cloudConfig.route)
-}}
{{- range $class, $values := .Values.cloudConfig.loadBalancerClasses -}}
{{- $sections = append $sections (dict "name" (printf "LoadBalancerClass %s" (include "openstack-ccm.cloudConfigValue" $class)) "values" $values) -}}
{{- end -}}
{{- range $index, $section := $sections -}}
{{- if $index }}

{{ end -}}
{{ include "openstack-ccm.cloudConfigSection" $section }}
{{- end }}
{{- end }}
{{- end -}}
