{{- define "watchkeeper.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "watchkeeper.selector" -}}
app.kubernetes.io/name: watchkeeper
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "watchkeeper.labels" -}}
{{ include "watchkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "watchkeeper.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "watchkeeper.name" .) }}
{{- end }}

{{- define "watchkeeper.config" -}}
{{- $tls := dict "certFile" "/var/run/secrets/watchkeeper-tls/tls.crt" "keyFile" "/var/run/secrets/watchkeeper-tls/tls.key" }}
{{- $listener := dict "name" "kube" "address" ":8443" "tls" $tls }}
{{- $cluster := dict "name" "default" "tls" (dict "caFile" "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt" "serverName" "kubernetes.default.svc") }}
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
{{- $config := dict "apiVersion" "watchkeeper.dev/v1alpha2" "kind" "WatchkeeperConfiguration" "metadata" (dict "name" .Release.Name) "listeners" (list $listener) "clusters" (list $cluster) "admin" (dict "metricsAddress" ":7481") }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}
