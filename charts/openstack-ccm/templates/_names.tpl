{{/* The class of a trial beside another cloud-controller-manager; empty when this is none. */}}
{{- define "openstack-ccm.trialClass" -}}
{{- (.Values.trial).loadBalancerClass | default "" -}}
{{- end -}}

{{/* A name, which a trial makes another one: nothing of it may clash with what is there. */}}
{{- define "openstack-ccm.ownName" -}}
{{- if include "openstack-ccm.trialClass" .root -}}
{{- printf "%s-trial" (.name | trunc 57 | trimSuffix "-" | trimSuffix ".") -}}
{{- else -}}
{{- .name -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the kubeconfig of the cluster that is served; empty when that is the one in which the pods run. */}}
{{- define "openstack-ccm.kubeconfigSecret" -}}
{{- (.Values.workloadCluster).kubeconfigSecret | default "" -}}
{{- end -}}

{{/* The name of an object beside the pods: for a workload cluster with the name of the release, as several may stand beside each other. */}}
{{- define "openstack-ccm.nameHere" -}}
{{- $name := include "openstack-ccm.ownName" . -}}
{{- if include "openstack-ccm.kubeconfigSecret" .root -}}
{{- $name = printf "%s-%s" (.root.Release.Name | trunc 30 | trimSuffix "-") $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Name of the workload and of what belongs to it. */}}
{{- define "openstack-ccm.name" -}}
{{- $default := ternary "openstack-ccm" "openstack-cloud-controller-manager" (or (include "openstack-ccm.trialClass" .) (include "openstack-ccm.kubeconfigSecret" .) | not | not) -}}
{{- include "openstack-ccm.nameHere" (dict "root" . "name" (default $default .Values.nameOverride)) -}}
{{- end -}}

{{- define "openstack-ccm.serviceAccountName" -}}
{{- include "openstack-ccm.nameHere" (dict "root" . "name" .Values.serviceAccountName) -}}
{{- end -}}

{{/* Whether the chart creates roles and bindings (any text), or somebody else does (empty). */}}
{{- define "openstack-ccm.createsRoles" -}}
{{- if include "openstack-ccm.needed" (dict "root" . "section" "rbac" "name" "create") | eq "true" -}}yes{{- end -}}
{{- end -}}

{{- define "openstack-ccm.clusterRoleName" -}}
{{- include "openstack-ccm.ownName" (dict "root" . "name" .Values.clusterRoleName) -}}
{{- end -}}

{{/* Name of the Secret: one that exists keeps its name, also for a trial. */}}
{{- define "openstack-ccm.secretName" -}}
{{- if .Values.secret.create -}}
{{- include "openstack-ccm.nameHere" (dict "root" . "name" .Values.secret.name) -}}
{{- else -}}
{{- .Values.secret.name -}}
{{- end -}}
{{- end -}}

{{/* Name of the leader's lease. */}}
{{- define "openstack-ccm.leaseName" -}}
{{- $name := dict "root" . "flag" "leader-elect-resource-name" "default" "cloud-controller-manager" | include "openstack-ccm.flag" -}}
{{- include "openstack-ccm.ownName" (dict "root" . "name" $name) -}}
{{- end -}}

{{/* Namespace of the leader's lease. */}}
{{- define "openstack-ccm.leaseNamespace" -}}
{{- dict "root" . "flag" "leader-elect-resource-namespace" "default" "kube-system" | include "openstack-ccm.flag" -}}
{{- end -}}

{{/* Port of the endpoints. */}}
{{- define "openstack-ccm.port" -}}
{{- if include "openstack-ccm.trialClass" . -}}{{ include "openstack-ccm.needed" (dict "root" . "section" "trial" "name" "securePort") }}{{- else -}}{{ int .Values.securePort }}{{- end -}}
{{- end -}}

{{/* Name and version of the chart, as a label value. */}}
{{- define "openstack-ccm.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What the label `component` says, and with it the label `job` of the metrics. */}}
{{- define "openstack-ccm.component" -}}
{{- include "openstack-ccm.ownName" (dict "root" . "name" "controllermanager") -}}
{{- end -}}

{{/* Labels that select the pods. They cannot be changed on a living object: these are those of the OCCM chart. */}}
{{- define "openstack-ccm.selectorLabels" -}}
component: {{ include "openstack-ccm.component" . | toYaml }}
app: {{ include "openstack-ccm.name" . | toYaml }}
release: {{ .Release.Name | toYaml }}
{{- end -}}

{{/* Annotations and labels of every object of the namespace: `root`, and perhaps further `labels`, which override. */}}
{{- define "openstack-ccm.metadataWith" -}}
{{- include "openstack-ccm.checkValues" .root -}}
{{- with .root.Values.commonAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- $labels := dict
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/name" (include "openstack-ccm.name" .root)
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "helm.sh/chart" (include "openstack-ccm.chart" .root)
-}}
labels:
  {{- mergeOverwrite $labels (default dict .labels) | toYaml | nindent 2 }}
{{- end -}}

{{/* Annotations and labels of every object. */}}
{{- define "openstack-ccm.metadata" -}}
{{- include "openstack-ccm.metadataWith" (dict "root" .) -}}
{{- end -}}
