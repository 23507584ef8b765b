{{/* One value. Text in quotes needs quotes and backslashes escaped. */}}
{{- define "openstack-ccm.cloudConfigValue" -}}
{{- $text := toString . -}}
{{- if kindIs "float64" . -}}
{{- $text = int64 . | toString -}}
{{- end -}}
"{{ $text | replace "\\" "\\\\" | replace "\"" "\\\"" | replace "\n" "\\n" | replace "\t" "\\t" }}"
{{- end -}}

{{/* One section: a line for each key, and a line for each entry of a list. Null is absent. */}}
{{- define "openstack-ccm.cloudConfigSection" -}}
[{{ .name }}]
{{- range $key, $value := .values }}
{{- if kindIs "slice" $value }}
{{- range $value }}
{{ $key }} = {{ include "openstack-ccm.cloudConfigValue" . }}
{{- end }}
{{- else if not (kindIs "invalid" $value) }}
{{ $key }} = {{ include "openstack-ccm.cloudConfigValue" $value }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The text of cloud.conf. */}}
{{- define "openstack-ccm.cloudConfig" -}}
{{- if .Values.cloudConfigContents -}}
{{ .Values.cloudConfigContents }}
{{- else -}}
{{- $config := default dict .Values.cloudConfig -}}
{{- $sections := list
  (dict "name" "Global" "values" $config.global)
  (dict "name" "Networking" "values" $config.networking)
  (dict "name" "LoadBalancer" "values" $config.loadBalancer)
  (dict "name" "BlockStorage" "values" $config.blockStorage)
  (dict "name" "Metadata" "values" $config.metadata)
  (dict "name" "Route" "values" $config.route)
-}}
{{- range $class, $values := $config.loadBalancerClasses -}}
{{- $sections = append $sections (dict "name" (printf "LoadBalancerClass %s" (include "openstack-ccm.cloudConfigValue" $class)) "values" $values) -}}
{{- end -}}
{{- range $namespace, $values := $config.loadBalancerNamespaces -}}
{{- $sections = append $sections (dict "name" (printf "LoadBalancerNamespace %s" (include "openstack-ccm.cloudConfigValue" $namespace)) "values" $values) -}}
{{- end -}}
{{- range $index, $section := $sections -}}
{{- if $index }}

{{ end -}}
{{ include "openstack-ccm.cloudConfigSection" $section }}
{{- end }}
{{- end }}
{{- end -}}
