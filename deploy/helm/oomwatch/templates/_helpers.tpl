{{- define "oomwatch.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* What objects are chosen by; it must not change over upgrades. Takes (list . "server"). */}}
{{- define "oomwatch.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ default $top.Chart.Name $top.Values.nameOverride }}
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "oomwatch.labels" -}}
{{- $top := index . 0 -}}
{{ include "oomwatch.selector" . }}
app.kubernetes.io/version: {{ $top.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: oomwatch
app.kubernetes.io/managed-by: {{ $top.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $top.Chart.Name $top.Chart.Version | replace "+" "_" }}
{{- with $top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes (list . .Values.server.image). */}}
{{- define "oomwatch.image" -}}
{{- $top := index . 0 -}}{{- $image := index . 1 -}}
{{- if $image.digest -}}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else -}}{{ printf "%s:%s" $image.repository (default $top.Chart.AppVersion $image.tag) }}{{- end -}}
{{- end -}}

{{- define "oomwatch.tokens" -}}
{{- default (printf "%s-tokens" (include "oomwatch.fullname" .)) .Values.tokens.existingSecret -}}
{{- end -}}

{{/* Several servers, or one with PostgreSQL, keep nothing on a volume. */}}
{{- define "oomwatch.onVolume" -}}
{{- if not .Values.server.database.existingSecret -}}true{{- end -}}
{{- end -}}

{{- define "oomwatch.scheme" -}}{{ ternary "https" "http" (not (empty .Values.server.tls.existingSecret)) }}{{- end -}}

{{/* The node's folder belongs to root there, so that only an agent that is root can make a socket in it. */}}
{{- define "oomwatch.probeFolder" -}}
{{- if .Values.agent.identifyProcesses -}}{{ .Values.agent.probeFolder }}{{- end -}}
{{- end -}}

{{/* Mistakes that the schema cannot say. */}}
{{- define "oomwatch.check" -}}
{{- if gt (int .Values.server.replicas) 1 -}}
{{- $_ := required "server.replicas: several servers share a PostgreSQL; name its secret in server.database.existingSecret" .Values.server.database.existingSecret -}}
{{- $_ := required "server.replicas: several servers act as one by NATS; name its secret in server.nats.existingSecret" .Values.server.nats.existingSecret -}}
{{- else if .Values.server.nats.existingSecret -}}
{{- $_ := required "server.nats: is of use with PostgreSQL alone; name its secret in server.database.existingSecret" .Values.server.database.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* Restricted, as the pod security standards call it; what the server and a nameless agent need. */}}
{{- define "oomwatch.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}
{{- define "oomwatch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
