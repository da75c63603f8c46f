{{- define "watchkeeper.name" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "watchkeeper.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "watchkeeper.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "watchkeeper" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "watchkeeper.labels" -}}
{{ include "watchkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "watchkeeper.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "watchkeeper.name" .) "default") }}
{{- end }}

{{- define "watchkeeper.config" -}}
{{- $tls := dict "certFile" "/var/run/secrets/watchkeeper-tls/tls.crt" "keyFile" "/var/run/secrets/watchkeeper-tls/tls.key" }}
{{- $listener := dict "name" "kube" "address" ":8443" "tls" $tls }}
{{- $admin := dict "metricsAddress" ":7481" }}
{{- if eq .Values.mode "DaemonSet" }}
{{- $listener = dict "name" "kube" "address" "127.0.0.1:7443" "mode" "Passthrough" }}
{{- $admin = dict "metricsAddress" (.Values.metrics.secure | ternary ":7481" "127.0.0.1:7481") "probeThread" false }}
{{- end }}
{{- if .Values.metrics.secure }}
{{- $_ := set $admin "metrics" (dict "tls" (deepCopy $tls) "authorization" (dict "mode" "Webhook")) }}
{{- end }}
{{- if .Values.replicas.enabled }}
{{- if ne .Values.mode "Deployment" }}
{{- fail "replicas: the pods of a DaemonSet listen on loopback, where other nodes cannot reach them" }}
{{- end }}
{{- $serverName := required "replicas.serverName: the name in the certificate of tls.secretName" .Values.replicas.serverName }}
{{- $host := printf "%s-replicas.%s.svc" (include "watchkeeper.name" .) .Release.Namespace }}
{{- $_ := set $admin "address" ":7480" }}
{{- $_ := set $admin "tls" (deepCopy $tls) }}
{{- $_ := set $admin "authorization" (dict "mode" "Webhook") }}
{{- $_ := set $admin "replicas" (dict "hostname" $host "port" 7480 "serverName" $serverName "caFile" "/var/run/secrets/watchkeeper-tls/ca.crt") }}
{{- end }}
{{- $cluster := dict "name" "default" "tls" (dict "caFile" "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt" "serverName" "kubernetes.default.svc") }}
{{- if and .Values.frontProxy.secretName (eq .Values.mode "DaemonSet") }}
{{- fail "frontProxy: a DaemonSet does not terminate TLS, so it cannot use a front-proxy key pair" }}
{{- end }}
{{- if .Values.frontProxy.secretName }}
{{- $_ := set $tls "clientCAFile" "/var/run/secrets/watchkeeper-client-ca/ca.crt" }}
{{- $_ := set $listener "identity" (dict "clientCerts" "FrontProxy") }}
{{- $_ := set $cluster.tls "frontProxy" (dict "certFile" "/var/run/secrets/watchkeeper-front-proxy/tls.crt" "keyFile" "/var/run/secrets/watchkeeper-front-proxy/tls.key") }}
{{- end }}
{{- if .Values.backends }}
{{- $_ := set $cluster "backends" .Values.backends }}
{{- else }}
{{- $_ := set $cluster "discovery" (dict "type" "EndpointSlice") }}
{{- end }}
{{- $cluster = mergeOverwrite $cluster (deepCopy .Values.cluster) }}
{{- $config := dict "apiVersion" "watchkeeper.dev/v1alpha2" "kind" "WatchkeeperConfiguration" "metadata" (dict "name" .Release.Name) "listeners" (list $listener) "clusters" (list $cluster) "admin" $admin }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}

{{- define "watchkeeper.probe" -}}
{{- $values := (index . 0).Values }}
{{- $scheme := $values.metrics.secure | ternary "HTTPS" "HTTP" }}
{{- if eq $values.mode "DaemonSet" -}}
{scheme: {{ $scheme }}, host: 127.0.0.1, path: {{ index . 1 }}, port: 7481}
{{- else -}}
{scheme: {{ $scheme }}, path: {{ index . 1 }}, port: metrics}
{{- end }}
{{- end }}
