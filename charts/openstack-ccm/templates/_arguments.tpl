{{/* Whether a controller runs (any text) or not (empty): the first entry that names it decides, then `*`. */}}
{{- define "openstack-ccm.runs" -}}
{{- $long := get (dict
  "cloud-node" "cloud-node-controller"
  "cloud-node-lifecycle" "cloud-node-lifecycle-controller"
  "route" "node-route-controller"
  "service" "service-lb-controller"
) .controller -}}
{{- $decided := "" -}}
{{- range .root.Values.enabledControllers -}}
{{- if and (not $decided) (has (trimPrefix "-" .) (list $.controller $long)) -}}
{{- $decided = ternary "no" "yes" (hasPrefix "-" .) -}}
{{- end -}}
{{- end -}}
{{- /* A further --controllers adds to the list: grant what any of them may need. */ -}}
{{- if or (eq $decided "yes") (and (not $decided) (has "*" .root.Values.enabledControllers)) (contains "--controllers" (include "openstack-ccm.extraArguments" .root)) -}}
yes
{{- end -}}
{{- end -}}

{{/* Arguments of the values, one a line: extraArgs, then the text of controllerExtraArgs. */}}
{{- define "openstack-ccm.extraArguments" -}}
{{- with .Values.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- if kindIs "string" .Values.controllerExtraArgs }}
{{- with .Values.controllerExtraArgs }}
{{ tpl . $ | trim }}
{{- end }}
{{- else if kindIs "slice" .Values.controllerExtraArgs }}
{{- with .Values.controllerExtraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The last value of a flag among those arguments, else the default. */}}
{{- define "openstack-ccm.flag" -}}
{{- $value := .default -}}
{{- range regexFindAll (printf "--%s=[^\\s\"']+" .flag) (include "openstack-ccm.extraArguments" .root) -1 -}}
{{- $value = trimPrefix (printf "--%s=" $.flag) . -}}
{{- end -}}
{{- $value -}}
{{- end -}}

{{/* Where the endpoints listen: for everyone only where somebody outside of the host asks. */}}
{{- define "openstack-ccm.bindAddress" -}}
{{- if or (.Values.serviceMonitor).enabled (not .Values.hostNetwork) -}}
0.0.0.0
{{- else -}}
127.0.0.1
{{- end -}}
{{- end -}}
