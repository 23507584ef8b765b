{{/* Whether Prometheus reads the endpoints of the pods (any text) or not (empty). */}}
{{- define "openstack-ccm.scraped" -}}
{{- if or (.Values.serviceMonitor).enabled (.Values.podMonitor).enabled -}}yes{{- end -}}
{{- end -}}

{{/* Whether it needs an account for that (any text), or every monitor names its own credentials (empty). */}}
{{- define "openstack-ccm.needsReader" -}}
{{- range $section := list .Values.serviceMonitor .Values.podMonitor -}}
{{- if and ($section).enabled (not ($section).authorization) -}}yes{{- end -}}
{{- end -}}
{{- end -}}

{{/* How Prometheus reads the port: `root`, and the `section` of the values that says so. */}}
{{- define "openstack-ccm.scrape" -}}
{{- $values := get .root.Values .section -}}
port: http
scheme: https
interval: {{ include "openstack-ccm.needed" (dict "root" .root "section" .section "name" "interval") }}
{{- with $values.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
authorization:
  {{- with $values.authorization }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  type: Bearer
  credentials:
    name: {{ include "openstack-ccm.name" .root }}-metrics
    key: token
  {{- end }}
tlsConfig:
  {{- with $values.tlsConfig }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  # The certificate of the endpoint is made by the program itself unless --tls-cert-file names another.
  insecureSkipVerify: true
  {{- end }}
{{- with $values.relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
