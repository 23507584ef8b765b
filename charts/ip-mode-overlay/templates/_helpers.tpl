{{/* The name of everything: the policy and the field manager have it as well, so that there is one overlay in a cluster. */}}
{{- define "overlay.labels" -}}
app.kubernetes.io/name: ip-mode-overlay
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "overlay.selector" -}}
app.kubernetes.io/name: ip-mode-overlay
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "overlay.image" -}}
{{- $repository := required "image.repository: name the image of openstack-ccm, with its registry; without the controller (controller.enabled=false, policy.enabled=true) none is needed" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "overlay.container" -}}
image: {{ include "overlay.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* The same for the canary: `root` and `name`. */}}
{{- define "overlay.canaryContainer" -}}
{{ include "overlay.container" .root }}
readinessProbe:
  httpGet:
    path: /{{ .name }}
    port: 8081
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
{{- with .root.Values.canary.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What is chosen and what is known of the cluster, a list in JSON: `run` and `check` take the same. */}}
{{- define "overlay.ruleArguments" -}}
{{- $arguments := list -}}
{{- with .Values.clouds -}}{{- $arguments = append $arguments (printf "--cloud=%s" (join "," .)) -}}{{- end -}}
{{- range .Values.annotations -}}{{- $arguments = append $arguments (printf "--annotation=%s" .) -}}{{- end -}}
{{- with .Values.selector -}}{{- $arguments = append $arguments (printf "--selector=%s" (join "," .)) -}}{{- end -}}
{{- with .Values.hostnameSuffix -}}{{- $arguments = append $arguments (printf "--hostname-suffix=%s" .) -}}{{- end -}}
{{- if ne (toString .Values.loadBalancerIPMode) "" -}}
{{- $arguments = append $arguments (printf "--feature-gates=LoadBalancerIPMode=%s" (toString .Values.loadBalancerIPMode)) -}}
{{- end -}}
{{- if .Values.canary.enabled -}}
{{- $arguments = append $arguments "--canary-namespace=ip-mode-overlay-canary" -}}
{{- $arguments = append $arguments (printf "--canary-addresses=%s" (join "," .Values.canary.addresses)) -}}
{{- end -}}
{{- toJson $arguments -}}
{{- end -}}

{{- define "overlay.pod" -}}
serviceAccountName: ip-mode-overlay
securityContext:
  runAsNonRoot: true
  runAsUser: 1001
  runAsGroup: 1001
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A string of CEL. */}}
{{- define "overlay.quoted" -}}
'{{ . | replace "\\" "\\\\" | replace "'" "\\'" }}'
{{- end -}}
