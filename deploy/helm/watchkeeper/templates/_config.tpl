{{- /* The configuration. Refuses values that contradict each other, with all reasons at once. */}}
{{- define "watchkeeper.config" -}}
{{- $values := .Values }}
{{- $onNodes := eq $values.mode "DaemonSet" }}
{{- $no := list }}

{{- $tls := dict "certFile" "/var/run/secrets/watchkeeper-tls/tls.crt" "keyFile" "/var/run/secrets/watchkeeper-tls/tls.key" }}
{{- $listener := dict "name" "kube" "address" ":8443" "tls" (deepCopy $tls) }}
{{- $admin := dict "metricsAddress" ":7481" }}
{{- if $onNodes }}
{{- $listener = dict "name" "kube" "address" "127.0.0.1:7443" "mode" "Passthrough" }}
{{- $admin = dict "metricsAddress" ($values.metrics.secure | ternary ":7481" "127.0.0.1:7481") "probeThread" false }}
{{- end }}
{{- if $values.metrics.secure }}
{{- $_ := set $admin "metrics" (dict "tls" (deepCopy $tls) "authorization" (dict "mode" "Webhook")) }}
{{- end }}
{{- if $values.replicas.enabled }}
{{- if $onNodes }}
{{- $no = append $no "replicas: the pods of a DaemonSet listen on loopback, where other nodes cannot reach them" }}
{{- else if not $values.replicas.serverName }}
{{- $no = append $no "replicas.serverName: the name in the certificate of tls.secretName by which the pods verify each other" }}
{{- end }}
{{- $host := printf "%s-replicas.%s.svc" (include "watchkeeper.name" .) .Release.Namespace }}
{{- $_ := set $admin "address" ":7480" }}
{{- $_ := set $admin "tls" (deepCopy $tls) }}
{{- $_ := set $admin "authorization" (dict "mode" "Webhook") }}
{{- $_ := set $admin "replicas" (dict "hostname" $host "port" 7480 "serverName" $values.replicas.serverName "caFile" "/var/run/secrets/watchkeeper-tls/ca.crt") }}
{{- end }}
{{- $cluster := dict "name" "default" "tls" (dict "caFile" "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt" "serverName" "kubernetes.default.svc") }}
{{- with $values.frontProxy }}
{{- if .secretName }}
{{- $_ := set $cluster.tls "frontProxy" (dict "certFile" "/var/run/secrets/watchkeeper-front-proxy/tls.crt" "keyFile" "/var/run/secrets/watchkeeper-front-proxy/tls.key") }}
{{- if $onNodes }}
{{- $no = append $no "frontProxy: a DaemonSet does not terminate TLS, so it cannot use a front-proxy key pair" }}
{{- else }}
{{- $_ := set $listener.tls "clientCAFile" "/var/run/secrets/watchkeeper-client-ca/ca.crt" }}
{{- $_ := set $listener "identity" (dict "clientCerts" "FrontProxy") }}
{{- end }}
{{- if not .clientCASecretName }}
{{- $no = append $no "frontProxy.clientCASecretName: the CA that verifies client certificates" }}
{{- end }}
{{- if eq .secretName $values.tls.secretName }}
{{- $no = append $no "frontProxy.secretName: is also tls.secretName, but a serving certificate is no front-proxy certificate" }}
{{- end }}
{{- else if .clientCASecretName }}
{{- $no = append $no "frontProxy.clientCASecretName: has no effect without frontProxy.secretName" }}
{{- end }}
{{- end }}
{{- if hasKey $values.cluster "backends" }}
{{- $no = append $no "cluster.backends: write the apiservers to backends" }}
{{- end }}
{{- if $values.backends }}
{{- $_ := set $cluster "backends" $values.backends }}
{{- if hasKey $values.cluster "discovery" }}
{{- $no = append $no "cluster.discovery: contradicts backends" }}
{{- end }}
{{- else }}
{{- $_ := set $cluster "discovery" (dict "type" "EndpointSlice") }}
{{- end }}
{{- $cluster = mergeOverwrite $cluster (deepCopy $values.cluster) }}
{{- if eq (dig "discovery" "type" "" $cluster) "Lease" }}
{{- $no = append $no "cluster.discovery.type: the chart gives no right to read Leases; EndpointSlice needs none but its own" }}
{{- end }}
{{- $config := dict "apiVersion" "watchkeeper.dev/v1alpha2" "kind" "WatchkeeperConfiguration" "metadata" (dict "name" .Release.Name) "listeners" (list $listener) "clusters" (list $cluster) "admin" $admin }}
{{- $config = mergeOverwrite $config (deepCopy $values.config) }}

{{- if not (hasSuffix ":7481" $config.admin.metricsAddress) }}
{{- $no = append $no "config.admin.metricsAddress: the probes and the monitor need port 7481" }}
{{- end }}
{{- if and (not $values.metrics.secure) (dig "admin" "metrics" (dict) $config) }}
{{- $no = append $no "config.admin.metrics: set metrics.secure, so that probes use TLS as well" }}
{{- end }}
{{- $addresses := list }}
{{- range $config.listeners }}{{ $addresses = append $addresses (.address | default "") }}{{ end }}
{{- if not $onNodes }}
{{- if not (regexMatch ":8443( |$)" (join " " $addresses)) }}
{{- $no = append $no "config.listeners: the Service needs a listener on port 8443" }}
{{- end }}
{{- end }}
{{- range $config.clusters }}
{{- $pair := or (dig "tls" "frontProxy" (dict) .) (dig "tls" "impersonator" (dict) .) }}
{{- if and $pair (not $values.nodeSelector) }}
{{- $no = append $no "nodeSelector: needed, because a front-proxy or impersonator key acts as any user: select control-plane nodes, and tolerate their taint" }}
{{- end }}
{{- end }}
{{- $seconds := 0.0 }}
{{- range list (dig "drain" "shutdownDelay" "5s" $config) (dig "drain" "timeout" "60s" $config) }}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 }}
{{- $factor := get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) (regexFind "[a-z]+" .) }}
{{- $seconds = addf $seconds (mulf (regexFind "[0-9.]+" . | float64) $factor) }}
{{- end }}
{{- end }}
{{- if le (float64 $values.terminationGracePeriodSeconds) $seconds }}
{{- $no = append $no (printf "terminationGracePeriodSeconds: must exceed drain.shutdownDelay + drain.timeout, which are %v s" $seconds) }}
{{- end }}
{{- $no = concat $no (include "watchkeeper.refusals" . | fromYamlArray) }}
{{- if $no }}{{ fail (join "\n" (prepend $no "these values contradict each other:")) }}{{ end }}
{{- toYaml $config }}
{{- end }}

{{- /* Reasons against the objects, as a YAML list: what an apiserver would refuse, or take and never serve. */}}
{{- define "watchkeeper.refusals" -}}
{{- $values := .Values }}
{{- $onNodes := eq $values.mode "DaemonSet" }}
{{- $no := list }}
{{- $labels := include "watchkeeper.labels" . | fromYaml }}
{{- $maps := dict "podLabels" $values.podLabels "serviceMonitor.labels" $values.serviceMonitor.labels "prometheusRule.labels" $values.prometheusRule.labels "dashboard.labels" $values.dashboard.labels }}
{{- range $where, $map := $maps }}
{{- range $key, $_ := $map }}
{{- if hasKey $labels $key }}{{ $no = append $no (printf "%s: %s is a label of the chart" $where $key) }}{{ end }}
{{- end }}
{{- end }}
{{- if hasKey $values.podAnnotations "checksum/config" }}
{{- $no = append $no "podAnnotations: checksum/config is an annotation of the chart" }}
{{- end }}
{{- range $values.extraVolumes }}
{{- if has .name (list "config" "tls" "front-proxy" "client-ca" "api-ca") }}{{ $no = append $no (printf "extraVolumes: %s is a volume of the chart" .name) }}{{ end }}
{{- end }}
{{- range $values.extraVolumeMounts }}
{{- if regexMatch "^(/etc/watchkeeper|/var/run/secrets/(watchkeeper-(tls|front-proxy|client-ca)|kubernetes.io/serviceaccount))(/|$)" .mountPath }}
{{- $no = append $no (printf "extraVolumeMounts: the chart mounts a volume at %s" .mountPath) }}
{{- end }}
{{- end }}
{{- range concat $values.extraContainers $values.extraInitContainers }}
{{- if eq .name "watchkeeper" }}{{ $no = append $no "extraContainers: watchkeeper is the chart's own container" }}{{ end }}
{{- end }}
{{- range $values.extraArgs }}
{{- if hasPrefix "--config" . }}{{ $no = append $no "extraArgs: --config is the chart's own argument" }}{{ end }}
{{- end }}
{{- with $values.service }}
{{- if and $onNodes (ne .type "ClusterIP") }}{{ $no = append $no "service.type: a DaemonSet has no Service" }}{{ end }}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") }}
{{- $no = append $no "service.externalTrafficPolicy: needs service.type LoadBalancer or NodePort" }}
{{- end }}
{{- if and (or .loadBalancerClass .loadBalancerSourceRanges) (ne .type "LoadBalancer") }}
{{- $no = append $no "service.loadBalancerClass and loadBalancerSourceRanges: need service.type LoadBalancer" }}
{{- end }}
{{- end }}
{{- $strategies := $onNodes | ternary (list "RollingUpdate" "OnDelete") (list "RollingUpdate" "Recreate") }}
{{- if not (has (dig "type" "RollingUpdate" $values.strategy) $strategies) }}
{{- $no = append $no (printf "strategy.type: a %s has %s" $values.mode (join " or " $strategies)) }}
{{- end }}
{{- if and $onNodes $values.topologySpreadConstraints }}
{{- $no = append $no "topologySpreadConstraints: a DaemonSet has one pod on each node" }}
{{- end }}
{{- if and (or $values.replicas.enabled $values.metrics.secure) (eq (include "watchkeeper.serviceAccount" .) "default") }}
{{- $no = append $no "serviceAccount.name: every pod of the namespace that names no account runs as default, and would get the right to review tokens" }}
{{- end }}
{{- if $values.serviceMonitor.enabled }}
{{- if and $onNodes (not $values.metrics.secure) }}
{{- $no = append $no "serviceMonitor: the pods of a DaemonSet serve metrics at 127.0.0.1 only, unless metrics.secure is true" }}
{{- end }}
{{- if and $values.networkPolicy.enabled (not $onNodes) (not $values.networkPolicy.metricsFrom) }}
{{- $no = append $no "networkPolicy.metricsFrom: is empty, so Prometheus cannot read the metrics that serviceMonitor makes it read" }}
{{- end }}
{{- end }}
{{- if and (or $values.serviceMonitor.enabled $values.prometheusRule.enabled) (ne ($values.nameOverride | default "watchkeeper") "watchkeeper") }}
{{- $no = append $no "nameOverride: the alerts select job=\"watchkeeper\", which this label gives; fullnameOverride names the objects" }}
{{- end }}
{{- toJson $no }}
{{- end }}
