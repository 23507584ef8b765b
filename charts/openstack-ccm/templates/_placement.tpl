{{/*
On which nodes the pods run. A role without a value, which is how kubeadm labels a node, means every node with the label, because
RKE2 and k3s give it the value `true`.
*/}}
{{- define "openstack-ccm.placement" -}}
{{- $exact := dict -}}
{{- $roles := list -}}
{{- if kindIs "map" .Values.nodeSelector -}}
{{- range $label, $value := .Values.nodeSelector -}}
{{- if and (hasPrefix "node-role.kubernetes.io/" $label) (eq $value "") -}}
{{- $roles = append $roles (dict "key" $label "operator" "Exists") -}}
{{- else -}}
{{- $_ := set $exact $label $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $affinity := include "openstack-ccm.givenAffinity" . | fromYaml -}}
{{- if $roles -}}
{{- $nodes := default dict $affinity.nodeAffinity -}}
{{- $required := default dict $nodes.requiredDuringSchedulingIgnoredDuringExecution -}}
{{- $terms := list -}}
{{- range default (list dict) $required.nodeSelectorTerms -}}
{{- $terms = append $terms (merge (dict "matchExpressions" (concat $roles (default list .matchExpressions))) .) -}}
{{- end -}}
{{- $required = merge (dict "nodeSelectorTerms" $terms) $required -}}
{{- $nodes = merge (dict "requiredDuringSchedulingIgnoredDuringExecution" $required) $nodes -}}
{{- $affinity = merge (dict "nodeAffinity" $nodes) $affinity -}}
{{- end -}}
{{- with $exact }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat (default list .Values.tolerations) (include "openstack-ccm.routeTolerations" . | fromYamlArray) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (include "openstack-ccm.selectorLabels" $ | fromYaml)) }}
  {{- list (ternary . (merge $own .) (hasKey . "labelSelector")) | toYaml | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/*
Nodes without a route have this taint until the route controller takes it off. Kubernetes lets pods of a DaemonSet with the network of
their node onto such nodes, but not those of a Deployment.
*/}}
{{- define "openstack-ccm.routeTolerations" -}}
{{- $routes := or (default dict .Values.cloudConfig).route (contains "[Route]" (default "" .Values.cloudConfigContents)) (not .Values.secret.create) -}}
{{- if and (eq .Values.kind "Deployment") .Values.hostNetwork $routes (include "openstack-ccm.runs" (dict "root" . "controller" "route")) -}}
- key: node.kubernetes.io/network-unavailable
  operator: Exists
  effect: NoSchedule
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* A DaemonSet spreads its pods by itself; those of a Deployment should not share a node. */}}
{{- define "openstack-ccm.givenAffinity" -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity }}
{{- else if eq .Values.kind "Deployment" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "openstack-ccm.selectorLabels" . | nindent 12 }}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* The labels of the nodes that the pods run on, as `kubectl get nodes --selector` takes them. */}}
{{- define "openstack-ccm.nodeLabels" -}}
{{- $labels := list -}}
{{- if kindIs "map" .Values.nodeSelector -}}
{{- range $label, $value := .Values.nodeSelector -}}
{{- if and (hasPrefix "node-role.kubernetes.io/" $label) (eq $value "") -}}
{{- $labels = append $labels $label -}}
{{- else -}}
{{- $labels = append $labels (printf "%s=%s" $label $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "," $labels -}}
{{- end -}}
