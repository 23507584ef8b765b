{{/* The default probe of a path: with the host's network the endpoints may listen on the loopback interface only. */}}
{{- define "openstack-ccm.probe" -}}
httpGet:
  {{- if eq (include "openstack-ccm.bindAddress" .root) "127.0.0.1" }}
  host: 127.0.0.1
  {{- end }}
  path: {{ .path }}
  port: {{ include "openstack-ccm.port" .root }}
  scheme: HTTPS
periodSeconds: 10
timeoutSeconds: 5
{{- end -}}

{{/* Template of the pods, for either kind of workload. */}}
{{- define "openstack-ccm.pod" -}}
metadata:
  labels:
    {{- include "openstack-ccm.selectorLabels" . | nindent 4 }}
    chart: {{ include "openstack-ccm.chart" . }}
    heritage: {{ .Release.Service }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Other pods for another configuration, wherever its text comes from.
    {{- $checksum := dict "checksum/config" (include "openstack-ccm.cloudConfig" . | sha256sum) }}
    {{- mergeOverwrite dict (default dict .Values.commonAnnotations) (default dict .Values.podAnnotations) $checksum | toYaml | nindent 4 }}
spec:
  {{- include "openstack-ccm.podSpec" (dict "root" . "container" (include "openstack-ccm.container" .)) | nindent 2 }}
{{- end -}}

{{/* What runs the program as these pods do: `root`, the `container`, and an `account` in place of theirs. */}}
{{- define "openstack-ccm.podSpec" -}}
{{- $container := .container -}}
{{- $account := .account -}}
{{- with .root -}}
serviceAccountName: {{ $account | default (include "openstack-ccm.serviceAccountName" .) | toYaml }}
{{- if include "openstack-ccm.kubeconfigSecret" . }}
# Nothing is asked of the cluster in which the pods run.
automountServiceAccountToken: false
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | toYaml }}
{{- end }}
hostNetwork: {{ .Values.hostNetwork }}
dnsPolicy: {{ .Values.dnsPolicy }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "openstack-ccm.placement" . | trim }}
{{- . | nindent 0 }}
{{- end }}
# Longer than the program needs to finish a step and to give its lease back.
terminationGracePeriodSeconds: 30
{{- with .Values.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  {{- $container | nindent 2 }}
{{- if or .Values.secret.enabled .Values.extraVolumes (include "openstack-ccm.kubeconfigSecret" .) }}
volumes:
  {{- with include "openstack-ccm.kubeconfigSecret" . }}
  - name: workload-cluster
    secret:
      secretName: {{ . | toYaml }}
      items:
        - key: {{ include "openstack-ccm.needed" (dict "root" $.root "section" "workloadCluster" "name" "kubeconfigKey") }}
          path: kubeconfig
  {{- end }}
  {{- if .Values.secret.enabled }}
  - name: cloud-config-volume
    secret:
      secretName: {{ include "openstack-ccm.secretName" . | toYaml }}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The container. */}}
{{- define "openstack-ccm.container" -}}
- name: openstack-cloud-controller-manager
  image: {{ include "openstack-ccm.image" . | quote }}
  {{- with .Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
    - /bin/openstack-ccm
    - --v={{ .Values.logVerbosityLevel }}
    - --cloud-config=$(CLOUD_CONFIG)
    - --cluster-name=$(CLUSTER_NAME)
    {{- if include "openstack-ccm.kubeconfigSecret" . }}
    - --kubeconfig=/etc/workload-cluster/kubeconfig
    {{- end }}
    - --cloud-provider=openstack
    - --use-service-account-credentials=false
    - --controllers={{ include "openstack-ccm.controllers" . }}
    - --bind-address={{ include "openstack-ccm.bindAddress" . }}
    {{- if ne (include "openstack-ccm.port" .) "10258" }}
    - --secure-port={{ include "openstack-ccm.port" . }}
    {{- end }}
    {{- with include "openstack-ccm.canaryArguments" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "openstack-ccm.extraArguments" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "openstack-ccm.trialArguments" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
  {{- include "openstack-ccm.environment" . | nindent 2 }}
  ports:
    - name: http
      containerPort: {{ include "openstack-ccm.port" . }}
      {{- if .Values.hostNetwork }}
      # The scheduler never puts two such pods on one node.
      hostPort: {{ include "openstack-ccm.port" . }}
      {{- end }}
      protocol: TCP
  livenessProbe:
    {{- with .Values.livenessProbe }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "openstack-ccm.probe" (dict "root" . "path" "/livez") | nindent 4 }}
    initialDelaySeconds: 10
    failureThreshold: 6
    {{- end }}
  readinessProbe:
    {{- with .Values.readinessProbe }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- include "openstack-ccm.probe" (dict "root" . "path" "/readyz") | nindent 4 }}
    {{- end }}
  {{- with include "openstack-ccm.confinement" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* A container of `helm test`: its `name`, and the `arguments` as lines. */}}
{{- define "openstack-ccm.testContainer" -}}
- name: {{ .name }}
  image: {{ include "openstack-ccm.image" .root | quote }}
  {{- with .root.Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
    - /bin/openstack-ccm
    {{- .arguments | trim | nindent 4 }}
  {{- include "openstack-ccm.environment" .root | nindent 2 }}
  {{- with include "openstack-ccm.confinement" .root | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* A pod of `helm test`, of one container: `--logs` refuses a pod with two. */}}
{{- define "openstack-ccm.testPod" -}}
{{- $metadata := include "openstack-ccm.metadata" .root | fromYaml -}}
{{- $hook := dict "helm.sh/hook" "test" "helm.sh/hook-delete-policy" "before-hook-creation" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "openstack-ccm.name" .root | trunc 50 | trimSuffix "-" }}-{{ .name }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  annotations:
    {{- mergeOverwrite dict (default dict $metadata.annotations) $hook | toYaml | nindent 4 }}
  labels:
    {{- toYaml $metadata.labels | nindent 4 }}
spec:
  restartPolicy: Never
  {{- include "openstack-ccm.podSpec" (dict "root" .root "container" (include "openstack-ccm.testContainer" .) "account" .account) | nindent 2 }}
{{- end -}}

{{/* What cloud.conf names. */}}
{{- define "openstack-ccm.checkConfigArguments" -}}
- check-config
- --cloud-config=$(CLOUD_CONFIG)
- --online
- --controllers={{ include "openstack-ccm.controllers" . }}
{{- end -}}

{{/* Who leads. */}}
{{- define "openstack-ccm.statusArguments" -}}
- status
{{ include "openstack-ccm.clusterArguments" . }}
{{- end -}}

{{/* Where packets to all Services end. */}}
{{- define "openstack-ccm.doctorArguments" -}}
- doctor
- -A
- --cloud-config=$(CLOUD_CONFIG)
- --cluster-name=$(CLUSTER_NAME)
- --controllers={{ include "openstack-ccm.controllers" . }}
{{- with include "openstack-ccm.trialClass" . }}
- --load-balancer-class={{ . }}
{{- end }}
{{ include "openstack-ccm.clusterArguments" . }}
{{- end -}}

{{/* Where the cluster and the lease are. */}}
{{- define "openstack-ccm.clusterArguments" -}}
{{- if include "openstack-ccm.kubeconfigSecret" . -}}
- --kubeconfig=/etc/workload-cluster/kubeconfig
{{ end -}}
- --leader-elect-resource-namespace={{ include "openstack-ccm.leaseNamespace" . }}
- --leader-elect-resource-name={{ include "openstack-ccm.leaseName" . }}
{{- end -}}

{{/* The variables of a container. */}}
{{- define "openstack-ccm.environment" -}}
env:
  - name: CLOUD_CONFIG
    value: /etc/config/{{ (.Values.secret).key | default "cloud.conf" }}
  - name: CLUSTER_NAME
    value: {{ (.Values.cluster).name | quote }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* What a container may use and see. */}}
{{- define "openstack-ccm.confinement" -}}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or .Values.secret.enabled .Values.extraVolumeMounts (include "openstack-ccm.kubeconfigSecret" .) }}
volumeMounts:
  {{- if include "openstack-ccm.kubeconfigSecret" . }}
  - name: workload-cluster
    mountPath: /etc/workload-cluster
    readOnly: true
  {{- end }}
  {{- if .Values.secret.enabled }}
  - name: cloud-config-volume
    mountPath: /etc/config
    readOnly: true
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}
