{{/* The namespace of the canary: a trial has its own. */}}
{{- define "openstack-ccm.canaryNamespace" -}}
{{- $namespace := include "openstack-ccm.needed" (dict "root" . "section" "canary" "name" "namespace") | trimAll "\"" -}}
{{- include "openstack-ccm.ownName" (dict "root" . "name" $namespace) -}}
{{- end -}}

{{/* Whether there is a canary and somebody who reads it (any text) or not (empty). */}}
{{- define "openstack-ccm.hasCanary" -}}
{{- if (.Values.canary).enabled -}}{{- include "openstack-ccm.runs" (dict "root" . "controller" "service") -}}{{- end -}}
{{- end -}}

{{/* Arguments of the controller that reads it. */}}
{{- define "openstack-ccm.canaryArguments" -}}
{{- if include "openstack-ccm.hasCanary" . -}}
- --canary-namespace={{ include "openstack-ccm.canaryNamespace" . }}
- --canary-addresses={{ include "openstack-ccm.canaryAddresses" . }}
{{- end -}}
{{- end -}}

{{/* The addresses of its Services, as the program takes them. */}}
{{- define "openstack-ccm.canaryAddresses" -}}
{{- include "openstack-ccm.needed" (dict "root" . "section" "canary" "name" "addresses") | fromJsonArray | join "," -}}
{{- end -}}

{{/* Labels that select the pods. */}}
{{- define "openstack-ccm.canaryLabels" -}}
app.kubernetes.io/name: openstack-ccm-canary
{{- end -}}

{{/* A container: `name`, `arguments`, and perhaps `more`. */}}
{{- define "openstack-ccm.canaryContainer" -}}
- name: {{ .name }}
  image: {{ include "openstack-ccm.image" .root | quote }}
  {{- with .root.Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
    {{- toYaml .arguments | nindent 4 }}
  {{- with .more }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  readinessProbe:
    httpGet:
      path: /{{ .name }}
      port: 8081
    periodSeconds: 5
    timeoutSeconds: 2
    failureThreshold: 2
  {{- with .root.Values.canary.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
{{- end -}}
