{{/* Controllers to run: a trial has but one. */}}
{{- define "openstack-ccm.controllers" -}}
{{- if include "openstack-ccm.trialClass" . -}}service{{- else -}}{{ join "," .Values.enabledControllers }}{{- end -}}
{{- end -}}

{{/* Whether a controller runs (any text) or not (empty): the first entry that names it decides, then `*`. */}}
{{- define "openstack-ccm.runs" -}}
{{- $long := get (dict
  "cloud-node" "cloud-node-controller"
  "cloud-node-lifecycle" "cloud-node-lifecycle-controller"
  "route" "node-route-controller"
  "service" "service-lb-controller"
) .controller -}}
{{- $list := splitList "," (include "openstack-ccm.controllers" .root) -}}
{{- $decided := "" -}}
{{- range $list -}}
{{- if and (not $decided) (has (trimPrefix "-" .) (list $.controller $long)) -}}
{{- $decided = ternary "no" "yes" (hasPrefix "-" .) -}}
{{- end -}}
{{- end -}}
{{- /* A further --controllers adds to the list: grant what any of them may need. */ -}}
{{- if or (eq $decided "yes") (and (not $decided) (has "*" $list)) (contains "--controllers" (include "openstack-ccm.extraArguments" .root)) -}}
yes
{{- end -}}
{{- end -}}

{{/*
controllerExtraArgs as a list: a list, or a text as the OCCM chart takes it, with one "- --flag=value" a line. A text without the
dashes in front is a command line.
*/}}
{{- define "openstack-ccm.controllerExtraArgs" -}}
{{- $given := .Values.controllerExtraArgs -}}
{{- $list := list -}}
{{- if kindIs "slice" $given -}}
{{- $list = $given -}}
{{- else if kindIs "string" $given -}}
{{- $text := tpl $given . | trim -}}
{{- if $text -}}
{{- if not (regexMatch "(?m)^\\s*- " $text) -}}
{{- $text = regexReplaceAll "(^|\\s+)--" $text "\n- --" -}}
{{- end -}}
{{- $list = fromYamlArray $text -}}
{{- range $list -}}
{{- if not (and (kindIs "string" .) (hasPrefix "-" (toString .))) -}}
{{- fail (printf "controllerExtraArgs holds what is no argument (%s): write one \"- --flag=value\" a line, or use extraArgs, which is a list" (toString .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{/* Arguments of the values: extraArgs, then those of controllerExtraArgs. */}}
{{- define "openstack-ccm.extraArguments" -}}
{{- $list := list -}}
{{- with .Values.featureGates -}}{{- $list = append $list (printf "--feature-gates=%s" .) -}}{{- end -}}
{{- $list = concat $list (default list .Values.extraArgs) (include "openstack-ccm.controllerExtraArgs" . | fromJsonArray) -}}
{{- if $list }}
{{- toYaml $list }}
{{- end }}
{{- end -}}

{{/* Arguments of a trial. They come last, and the last value of a flag is the one that holds. */}}
{{- define "openstack-ccm.trialArguments" -}}
{{- with include "openstack-ccm.trialClass" . -}}
- --load-balancer-class={{ . }}
- --leader-elect-resource-name={{ include "openstack-ccm.leaseName" $ }}
{{- end -}}
{{- end -}}

{{/* The last value of a flag among those arguments, else the default. */}}
{{- define "openstack-ccm.flag" -}}
{{- $value := .default -}}
{{- range regexFindAll (printf "--%s=[^\\s\"']+" .flag) (include "openstack-ccm.extraArguments" .root) -1 -}}
{{- $value = trimPrefix (printf "--%s=" $.flag) . -}}
{{- end -}}
{{- $value -}}
{{- end -}}

{{/* Whether the API server checks annotations of Services (any text) or not (empty). */}}
{{- define "openstack-ccm.checksAnnotations" -}}
{{- $wanted := include "openstack-ccm.needed" (dict "root" . "section" "annotationPolicy" "name" "enabled") | trimAll "\"" -}}
{{- $possible := and (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) (not (include "openstack-ccm.kubeconfigSecret" .)) -}}
{{- if or (eq $wanted "true") (and $possible (eq $wanted "auto")) -}}{{ include "openstack-ccm.runs" (dict "root" . "controller" "service") }}{{- end -}}
{{- end -}}

{{/* Where the endpoints listen: for everyone only where somebody outside of the host asks. */}}
{{- define "openstack-ccm.bindAddress" -}}
{{- if or (include "openstack-ccm.scraped" .) (not .Values.hostNetwork) -}}
0.0.0.0
{{- else -}}
127.0.0.1
{{- end -}}
{{- end -}}
