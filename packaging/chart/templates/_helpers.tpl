{{- define "vary.name" -}}
{{- if contains "vary" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-vary" (.Release.Name | trunc 47 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "vary.selector" -}}
app.kubernetes.io/name: vary
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vary.labels" -}}
{{ include "vary.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* Whether there can be more than one pod. */}}
{{- define "vary.several" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}yes{{- end -}}
{{- end -}}

{{/* The Secret with the files of /run/secrets/vary, if there is one. */}}
{{- define "vary.secret" -}}
{{- if .Values.secret.name -}}
{{- .Values.secret.name -}}
{{- else if .Values.secret.data -}}
{{- include "vary.name" . -}}
{{- end -}}
{{- end -}}

{{/* The configuration. What cannot work is refused here, with what to write. */}}
{{- define "vary.config" -}}
{{- $config := deepCopy (.Values.config | default dict) -}}
{{- if not $config.servers -}}
{{- fail "set config.servers: the servers behind Vary, such as --set config.servers.search.url=https://example.com/mcp" -}}
{{- end -}}
{{- if or $config.listen $config.probes -}}
{{- fail "remove config.listen and config.probes: the chart sets both" -}}
{{- end -}}
{{- if and (contains "/run/secrets/vary/" (toYaml $config)) (not (include "vary.secret" .)) -}}
{{- fail "set secret.name, or secret.data: config reads files of /run/secrets/vary" -}}
{{- end -}}
{{- if not $config.auth -}}
{{- fail "set config.auth: who may use Vary; other pods can connect to it" -}}
{{- end -}}
{{- if and (not .Values.tls.secretName) (not (index $config "behind-proxy")) -}}
{{- fail "set tls.secretName, or config.behind-proxy and config.trusted-proxies if a proxy encrypts" -}}
{{- end -}}
{{- if and (index $config "behind-proxy") (not (index $config "trusted-proxies")) -}}
{{- fail "set config.trusted-proxies: the networks of the proxy that encrypts, such as that of the ingress controller's pods" -}}
{{- end -}}
{{- if not (or (index $config "public-url") (and $config.hosts (not $config.auth.issuers))) -}}
{{- fail "set config.public-url: the address by which clients reach Vary, such as https://vary.mcp.svc" -}}
{{- end -}}
{{- if .Values.ingress.enabled -}}
{{- $names := append (default list $config.hosts) (urlParse (default "" (index $config "public-url"))).hostname -}}
{{- if not (has .Values.ingress.host $names) -}}
{{- fail (printf "set ingress.host to the name in config.public-url, or add it to config.hosts: clients that use %q are refused with 403" .Values.ingress.host) -}}
{{- end -}}
{{- end -}}
{{- if and (include "vary.several" .) (not $config.keys) -}}
{{- fail "set config.keys: without it, replicas cannot open each other's sessions" -}}
{{- end -}}
{{- $added := dict "listen" "0.0.0.0:8800" "probes" "0.0.0.0:8802" "limits" (deepCopy .Values.limits) -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $added "tls" (dict "certificate" "/run/secrets/vary-tls/tls.crt" "key" "/run/secrets/vary-tls/tls.key") -}}
{{- end -}}
{{- mergeOverwrite $added $config | toYaml -}}
{{- end -}}
