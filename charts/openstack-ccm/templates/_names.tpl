{{/* Name of the workload and of what belongs to it. */}}
{{- define "openstack-ccm.name" -}}
{{- default "openstack-cloud-controller-manager" .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name and version of the chart, as a label value. */}}
{{- define "openstack-ccm.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that select the pods. They cannot be changed on a living object: these are those of the OCCM chart. */}}
{{- define "openstack-ccm.selectorLabels" -}}
component: controllermanager
app: {{ include "openstack-ccm.name" . }}
release: {{ .Release.Name }}
{{- end -}}

{{/* Annotations and labels of every object. Further labels may follow. */}}
{{- define "openstack-ccm.metadata" -}}
{{- with .Values.commonAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{ end -}}
labels:
  app.kubernetes.io/instance: {{ .Release.Name }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  app.kubernetes.io/name: {{ include "openstack-ccm.name" . }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  helm.sh/chart: {{ include "openstack-ccm.chart" . }}
{{- end -}}

{{/*
Whether the values are those of this chart. `helm upgrade --reuse-values` from another chart brings that chart's defaults,
its image among them, and none of ours.
*/}}
{{- define "openstack-ccm.checkValues" -}}
{{- if not .Values.kind -}}
{{- fail "the values are those of another chart: use `helm upgrade --reset-then-reuse-values`, or `--values` with your own file, in place of --reuse-values" -}}
{{- end -}}
{{- end -}}
