{{- /* The suffixes of up to 15 characters must fit into the 63 of a DNS label. A name is refused and not cut, so that two releases never share one. */}}
{{- define "watchkeeper.name" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $full := .Values.fullnameOverride | default (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,46}[a-z0-9])?$" $full) }}
{{- fail (printf "%q cannot be the name of the objects: set fullnameOverride to at most 48 lower-case letters, digits and dashes, the first a letter" $full) }}
{{- end }}
{{- $full }}
{{- end }}

{{- /* The name of objects that belong to no namespace, or to another one. No name has a dot, so no two releases share this name. */}}
{{- define "watchkeeper.clusterWideName" -}}
{{ include "watchkeeper.name" . }}.{{ .Release.Namespace }}
{{- end }}

{{- define "watchkeeper.image" -}}
{{- with .Values.image }}
{{- $how := "image.repository: the name of watchkeeper's image in your registry. `npm run release` makes the image: see watchkeeper docs release" }}
{{- required $how .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "watchkeeper.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "watchkeeper" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "watchkeeper.labels" -}}
{{ include "watchkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "watchkeeper.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "watchkeeper.name" .) }}
{{- else }}{{ required "serviceAccount.name: needed if serviceAccount.create is false, because the chart gives this account rights" .Values.serviceAccount.name }}
{{- end }}
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

{{- define "watchkeeper.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "watchkeeper.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "watchkeeper.mounts" -}}
- {name: config, mountPath: /etc/watchkeeper, readOnly: true}
{{- if or (eq .Values.mode "Deployment") .Values.metrics.secure }}
- {name: tls, mountPath: /var/run/secrets/watchkeeper-tls, readOnly: true}
{{- end }}
{{- if .Values.frontProxy.secretName }}
- {name: front-proxy, mountPath: /var/run/secrets/watchkeeper-front-proxy, readOnly: true}
- {name: client-ca, mountPath: /var/run/secrets/watchkeeper-client-ca, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Everything but the configuration's own volume. */}}
{{- define "watchkeeper.volumes" -}}
{{- if or (eq .Values.mode "Deployment") .Values.metrics.secure }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName | quote }}
{{- end }}
{{- if .Values.frontProxy.secretName }}
- name: front-proxy
  secret:
    secretName: {{ .Values.frontProxy.secretName | quote }}
- name: client-ca
  secret:
    secretName: {{ .Values.frontProxy.clientCASecretName | quote }}
    # Only the certificate: a Secret of a CA often contains its key as well.
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
