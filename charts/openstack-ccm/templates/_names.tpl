{{/* Labels that select the pods. */}}
{{- define "openstack-ccm.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "openstack-ccm.labels" -}}
{{ include "openstack-ccm.selectorLabels" . }}
app.kubernetes.io/component: cloud-controller-manager
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Annotations of every object. */}}
{{- define "openstack-ccm.annotations" -}}
{{- with .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* One section of cloud.conf; text in quotes needs its quotes and backslashes escaped. */}}
{{- define "openstack-ccm.section" -}}
[{{ .name }}]
{{- range $key, $value := .values }}
{{ $key }} = "{{ $value | toString | replace "\\" "\\\\" | replace "\"" "\\\"" | replace "\n" "\\n" }}"
{{- end }}
{{- end }}

{{/* The text of cloud.conf. */}}
{{- define "openstack-ccm.cloudConfig" -}}
{{- if .Values.cloudConfigContents -}}
{{ .Values.cloudConfigContents }}
{{- else -}}
{{ include "openstack-ccm.section" (dict "name" "Global" "values" .Values.cloudConfig.global) }}

{{ include "openstack-ccm.section" (dict "name" "Networking" "values" .Values.cloudConfig.networking) }}

{{ include "openstack-ccm.section" (dict "name" "LoadBalancer" "values" .Values.cloudConfig.loadBalancer) }}

{{ include "openstack-ccm.section" (dict "name" "BlockStorage" "values" .Values.cloudConfig.blockStorage) }}

{{ include "openstack-ccm.section" (dict "name" "Metadata" "values" .Values.cloudConfig.metadata) }}

{{ include "openstack-ccm.section" (dict "name" "Route" "values" .Values.cloudConfig.route) }}
{{- end }}
{{- end }}
