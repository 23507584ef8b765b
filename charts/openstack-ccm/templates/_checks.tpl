{{/* What only a look at several values finds. Each message names the value and the way out. */}}
{{- define "openstack-ccm.checkValues" -}}
{{- if not .Values.kind -}}
{{- /* `helm upgrade --reuse-values` from another chart brings that chart's defaults, its image among them, and none of ours. */ -}}
{{- fail "the values are those of another chart: use `helm upgrade --reset-then-reuse-values`, or `--values` with your own file, in place of --reuse-values" -}}
{{- end -}}
{{- range $name := list "replicas" "enabledControllers" "logVerbosityLevel" "serviceAccountName" "clusterRoleName" "hostNetwork" "dnsPolicy" "securePort" -}}
{{- if kindIs "invalid" (get $.Values $name) -}}
{{- fail (printf "%s is null, but it is required: remove it from your values to get the default" $name) -}}
{{- end -}}
{{- end -}}
{{- include "openstack-ccm.checkCloudConfig" . -}}
{{- range $flag, $value := dict "secure-port" "securePort" "cluster-name" "cluster.name" "cloud-config" "cloudConfig, cloudConfigContents or secret.name" -}}
{{- range regexFindAll (printf "--%s[= ][^\\s\"']*" $flag) (include "openstack-ccm.extraArguments" $) -1 -}}
{{- if ne . (printf "--cluster-name=%s" ($.Values.cluster).name) -}}
{{- fail (printf "%s is among extraArgs or controllerExtraArgs, but the chart sets --%s itself: set %s instead" . $flag $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "openstack-ccm.checkFeatureGates" . -}}
{{- include "openstack-ccm.checkWorkloadCluster" . -}}
{{- if and (eq (toString (.Values.annotationPolicy).enabled) "true") (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "annotationPolicy.enabled is true, and Kubernetes %s has no such policies (1.30 and newer have): set it to auto or false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if include "openstack-ccm.trialClass" . -}}
{{- range $flag := list "controllers" "load-balancer-class" "secure-port" -}}
{{- if contains (printf "--%s" $flag) (include "openstack-ccm.extraArguments" $) -}}
{{- fail (printf "--%s is among extraArgs or controllerExtraArgs, but trial.loadBalancerClass already sets it: remove the argument for the trial" $flag) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A misspelling of the program's own gate, by the program's rule: equal but for case, - or _, or by one edit. All others belong to
other components.
*/}}
{{- define "openstack-ccm.checkFeatureGates" -}}
{{- $ours := "loadbalanceripmode" -}}
{{- range splitList "," (default "" .Values.featureGates) -}}
{{- $name := regexReplaceAll "^[a-z]+:" (splitList "=" . | first | trim) "" -}}
{{- $plain := regexReplaceAll "[-_]" $name "" | lower -}}
{{- range $at := ternary (list) (until (len $ours)) (eq $name "LoadBalancerIPMode") -}}
{{- $letter := substr $at (int (add $at 1)) $ours -}}
{{- $rest := substr (int (add $at 1)) (len $ours) $ours -}}
{{- $swapped := printf "%s%s%s" (trunc 1 $rest) $letter (trimPrefix (trunc 1 $rest) $rest) -}}
{{- if regexMatch (printf "^%s((.?|%s.|.%s)%s|%s)$" (trunc $at $ours) $letter $letter $rest $swapped) $plain -}}
{{- fail (printf "featureGates names %s, which is not a gate: write LoadBalancerIPMode" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What belongs into the cluster that is served, and not into the one in which the pods run. */}}
{{- define "openstack-ccm.checkWorkloadCluster" -}}
{{- if include "openstack-ccm.kubeconfigSecret" . -}}
{{- if ne .Values.kind "Deployment" -}}
{{- fail "workloadCluster.kubeconfigSecret is set, so the nodes of this cluster need no pod each: set kind=Deployment" -}}
{{- end -}}
{{- if .Values.hostNetwork -}}
{{- fail "workloadCluster.kubeconfigSecret is set, so the pods need not wait for, or share, the network of a node: set hostNetwork=false, which lets several controllers run on one node" -}}
{{- end -}}
{{- if (.Values.canary).enabled -}}
{{- fail "workloadCluster.kubeconfigSecret is set, but canary.enabled would measure the nodes of this cluster: turn it off, and apply manifests/canary in the workload cluster" -}}
{{- end -}}
{{- range $monitor := list "serviceMonitor" "podMonitor" -}}
{{- $values := default dict (get $.Values $monitor) -}}
{{- if and $values.enabled (not $values.authorization) -}}
{{- fail (printf "workloadCluster.kubeconfigSecret is set, and the API server of the workload cluster decides who may read the metrics: set %s.authorization to a Secret with a token of that cluster, whose ServiceAccount may get /metrics" $monitor) -}}
{{- end -}}
{{- end -}}
{{- if eq (toString (.Values.annotationPolicy).enabled) "true" -}}
{{- fail "workloadCluster.kubeconfigSecret is set, but annotationPolicy.enabled would check the Services of this cluster: set it to false" -}}
{{- end -}}
{{- if contains "--kubeconfig" (include "openstack-ccm.extraArguments" .) -}}
{{- fail "--kubeconfig is among extraArgs or controllerExtraArgs, and workloadCluster.kubeconfigSecret sets it too: remove one of the two" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where cloud.conf comes from: from one place, and from somewhere. */}}
{{- define "openstack-ccm.checkCloudConfig" -}}
{{- $config := default dict .Values.cloudConfig -}}
{{- range $key := list "useExistingSecret" "existingSecret" "secretName" -}}
{{- if get $config $key -}}
{{- fail (printf "cloudConfig.%s is a value of neither this chart nor OCCM's, which ignores it: for an existing Secret set secret.create=false and secret.name=NAME; its key is cloud.conf" $key) -}}
{{- end -}}
{{- end -}}
{{- $sections := list -}}
{{- range $key, $values := $config -}}
{{- if $values -}}{{- $sections = append $sections (printf "cloudConfig.%s" $key) -}}{{- end -}}
{{- end -}}
{{- if and .Values.cloudConfigContents $sections -}}
{{- fail (printf "both cloudConfigContents and %s are set, and the latter would be ignored silently: keep one of them" (join ", " $sections)) -}}
{{- end -}}
{{- $variables := false -}}
{{- range .Values.extraEnv -}}{{- if hasPrefix "OS_" (toString .name) -}}{{- $variables = true -}}{{- end -}}{{- end -}}
{{- if and (.Values.secret).enabled (.Values.secret).create (not .Values.cloudConfigContents) (not $sections) (not $variables) -}}
{{- fail "there is no cloud.conf, and an empty one would replace the existing one: set cloudConfig.global and the other sections that you need (or cloudConfigContents), or, for an existing Secret, secret.create=false and secret.name; after `helm upgrade` without your values, add `--reset-then-reuse-values` or `--values FILE`" -}}
{{- end -}}
{{- end -}}

{{/* A value that somebody may have made null, which takes the default away. */}}
{{- define "openstack-ccm.needed" -}}
{{- $value := get (default dict (get .root.Values .section)) .name -}}
{{- if kindIs "invalid" $value -}}
{{- fail (printf "%s.%s is null, but it is required: remove it from your values to get the default" .section .name) -}}
{{- end -}}
{{- toJson $value -}}
{{- end -}}

{{/* The image, which nobody but the operator can know. */}}
{{- define "openstack-ccm.image" -}}
{{- $repository := (.Values.image).repository -}}
{{- if not $repository -}}
{{- fail "image.repository is not set, and there is no public image: build one with `make image`, push it to a registry that your nodes reach, and set image.repository to its name there, for example registry.example.org/openstack-ccm" -}}
{{- end -}}
{{- if hasSuffix "openstack-cloud-controller-manager" $repository -}}
{{- fail (printf "image.repository is %s, which is the image of another program, left from the values of its chart: set image.repository to an image of openstack-ccm, for example registry.example.org/openstack-ccm, and image.tag or image.digest to one of its versions" $repository) -}}
{{- end -}}
{{- if not (contains "/" $repository) -}}
{{- fail (printf "image.repository is %s, which names no registry, so that nodes would pull it from somebody's namespace on a public one: write the whole name, for example registry.example.org/%s (docker.io/library/%s for an image that was loaded onto the nodes under this short name)" $repository $repository $repository) -}}
{{- end -}}
{{- with .Values.image -}}
{{- $tag := .tag -}}
{{- if and (not $tag) (not .digest) -}}{{- $tag = $.Chart.AppVersion -}}{{- end -}}
{{- $repository -}}{{- with $tag }}:{{ . }}{{ end -}}{{- with .digest }}@{{ . }}{{ end -}}
{{- end -}}
{{- end -}}
