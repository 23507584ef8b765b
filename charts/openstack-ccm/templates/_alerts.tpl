{{/* What chooses the series of these pods among all others: the job, and what the operator adds. */}}
{{- define "openstack-ccm.seriesSelector" -}}
{{- $matchers := list (printf "job=%s" (.Values.prometheusRule.job | default (include "openstack-ccm.component" .) | quote)) -}}
{{- range $label, $value := .Values.prometheusRule.selector -}}
{{- $matchers = append $matchers (printf "%s=%s" $label ($value | quote)) -}}
{{- end -}}
{{- join "," $matchers -}}
{{- end -}}

{{/*
The groups of alerts.yaml. In its expressions `$selector` stands for what chooses the series, `$cluster` for the label that
distinguishes clusters, and each alert gets the address of its entry in the page of alerts.
*/}}
{{- define "openstack-ccm.alerts" -}}
{{- $file := .Files.Get "alerts.yaml" | fromYaml -}}
{{- $page := include "openstack-ccm.needed" (dict "root" . "section" "prometheusRule" "name" "runbookUrl") | trimAll "\"" -}}
{{- $cluster := include "openstack-ccm.needed" (dict "root" . "section" "prometheusRule" "name" "clusterLabel") | trimAll "\"" -}}
{{- range $file.groups -}}
{{- range .rules -}}
{{- $expression := .expr | replace "$selector" (include "openstack-ccm.seriesSelector" $) | replace "$cluster" $cluster -}}
{{- $_ := set . "expr" $expression -}}
{{- $_ := set .annotations "runbook_url" (printf "%s#%s" $page (lower .alert)) -}}
{{- $_ := set . "labels" (mergeOverwrite .labels (default dict $.Values.prometheusRule.alertLabels)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $file -}}
{{- end -}}
