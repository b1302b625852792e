{{/* The image of both agents, by digest if there is one. */}}
{{- define "pav.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* What users may set of an agent's pods. It is called with a list: the values of the agent, and those of the chart. */}}
{{- define "pav.pod" -}}
{{- $agent := index . 0 }}{{ $values := index . 1 }}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
priorityClassName: {{ $agent.priorityClassName }}
nodeSelector:
  {{- toYaml $agent.nodeSelector | nindent 2 }}
{{- $tolerations := $agent.tolerations }}
{{- if $values.startupTaint.enabled }}
{{- $tolerations = append $tolerations (dict "key" "pav.albertofaria.github.io/agent-not-ready" "operator" "Exists") }}
{{- end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The arguments that both agents can have, after the others. */}}
{{- define "pav.args" -}}
{{- $agent := index . 0 }}{{ $values := index . 1 }}
{{- if $values.logVerbosity }}
- --verbosity={{ $values.logVerbosity }}
{{- end }}
{{- with $values.podDefaults }}
- {{ printf "--pod-defaults=%s" (toJson .) | quote }}
{{- end }}
{{- with $agent.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
