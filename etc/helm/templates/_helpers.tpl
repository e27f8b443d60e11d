{{/* The name of objects in the namespace of the release. 52 characters leave room for what is appended. */}}
{{- define "blazar-enforcement.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | replace "." "-" | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | replace "." "-" | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of objects of the cluster. Releases in two namespaces may have the same name. No namespace has a dot, so two never meet. */}}
{{- define "blazar-enforcement.clusterName" -}}
{{- printf "%s.%s" (include "blazar-enforcement.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "blazar-enforcement.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "blazar-enforcement.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed if serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The DNS name that API servers call. */}}
{{- define "blazar-enforcement.dnsName" -}}
{{- printf "%s.%s.svc" (include "blazar-enforcement.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "blazar-enforcement.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ quote .Release.Name }}
{{- end -}}

{{- define "blazar-enforcement.labels" -}}
{{ include "blazar-enforcement.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The name and the labels of an object; with a namespace unless it is one of the cluster. */}}
{{- define "blazar-enforcement.metadata" -}}
name: {{ quote .name }}
{{- if .namespaced }}
namespace: {{ quote .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "blazar-enforcement.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) .root.Values.annotations }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The Secret with the certificate that the service serves. */}}
{{- define "blazar-enforcement.certificateSecret" -}}
{{- if eq .Values.certificates.mode "secret" -}}
{{- required "certificates.secret.name is needed if certificates.mode is secret" .Values.certificates.secret.name -}}
{{- else -}}
{{- printf "%s-certificate" (include "blazar-enforcement.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/*
A token that was given, or that the Secret of the release already has, or a new one. The first rendering keeps it in .Values, for all
templates to get the same.
*/}}
{{- define "blazar-enforcement.token" -}}
{{- $root := .root -}}
{{- if not (hasKey $root.Values "generated") -}}
{{- $_ := set $root.Values "generated" dict -}}
{{- end -}}
{{- if not (hasKey $root.Values.generated .key) -}}
{{- $name := printf "%s-tokens" (include "blazar-enforcement.fullname" $root) -}}
{{- $secret := lookup "v1" "Secret" $root.Release.Namespace $name -}}
{{- $before := get (default (dict) (get (default (dict) $secret) "data")) .key | b64dec | splitList "\n" | first | trim -}}
{{- $_ := set $root.Values.generated .key (coalesce .given $before (randAlphaNum 64 | lower)) -}}
{{- end -}}
{{- get $root.Values.generated .key -}}
{{- end -}}

{{/* Where Prometheus finds metrics, if not where API servers call. */}}
{{- define "blazar-enforcement.adminPort" -}}
{{- with get (default (dict) .Values.configuration.service) "admin_port" -}}
{{- int . -}}
{{- end -}}
{{- end -}}

{{/* Later files go before earlier ones. */}}
{{- define "blazar-enforcement.configFiles" -}}
--config-file, /etc/blazar-enforcement/configuration/policy-service.conf
{{- if .Values.existingSecret }}, --config-file, /etc/blazar-enforcement/existing/policy-service.conf{{ end }}
{{- end -}}

{{/* What both containers have: the command that makes the certificate reads the same configuration. The mounts are last, for more to follow. */}}
{{- define "blazar-enforcement.container" -}}
{{- $host := get (default (dict) .Values.configuration.service) "host" -}}
{{- if or $host .Values.extraEnv -}}
env:
  {{- with $host }}
  # The image sets it too, which goes before the file.
  - {name: OS_SERVICE__HOST, value: {{ quote . }}}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{ end -}}
{{- with .Values.extraEnvFrom -}}
envFrom:
  {{- toYaml . | nindent 2 }}
{{ end -}}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  - name: configuration
    mountPath: /etc/blazar-enforcement/configuration
    readOnly: true
  {{- if .Values.existingSecret }}
  - name: existing
    mountPath: /etc/blazar-enforcement/existing
    readOnly: true
  {{- end }}
{{- end -}}

{{/* One option of the configuration: a text, a number, a switch or a list. */}}
{{- define "blazar-enforcement.option" -}}
{{- $value := .value -}}
{{- if kindIs "slice" $value -}}
{{- $items := list -}}
{{- range $value -}}
{{- $items = append $items (toString .) -}}
{{- end -}}
{{- $value = join ", " $items -}}
{{- else if kindIs "float64" $value -}}
{{- /* toString would write 1e+06. */ -}}
{{- $value = toJson $value -}}
{{- else -}}
{{- $value = toString $value -}}
{{- end -}}
{{- if regexMatch "[\r\n]" $value -}}
{{- fail (printf "configuration.%s.%s: expected one line" .section .name) -}}
{{- end -}}
{{ .name }} = {{ $value }}
{{- end -}}

{{/* policy-service.conf */}}
{{- define "blazar-enforcement.configuration" -}}
{{- $folder := "/etc/blazar-enforcement" -}}
{{- $service := dict "port" 8642 "tokens_file" (printf "%s/tokens/service-token" $folder) -}}
{{- $kubernetes := dict "source" "cluster" "write_status" .Values.status.enabled "installed_webhooks" (printf "%s/configuration/webhooks.yaml" $folder) -}}
{{- if .Values.status.enabled -}}
{{- $_ := set $kubernetes "status_lease" (include "blazar-enforcement.fullname" .) -}}
{{- end -}}
{{- if eq .Values.certificates.mode "self" -}}
{{- $own := printf "%s/certificates/own" $folder -}}
{{- $_ := set $service "tls_cert_file" (printf "%s/server.pem" $own) -}}
{{- $_ := set $service "tls_key_file" (printf "%s/server.pem" $own) -}}
{{- $_ := set $kubernetes "certificate_folder" $own -}}
{{- $_ := set $kubernetes "certificate_secret" (include "blazar-enforcement.certificateSecret" .) -}}
{{- $_ := set $kubernetes "certificate_names" (include "blazar-enforcement.dnsName" .) -}}
{{- $_ := set $kubernetes "certificate_days" .Values.certificates.self.days -}}
{{- $_ := set $kubernetes "webhook_configurations" (include "blazar-enforcement.clusterName" .) -}}
{{- else -}}
{{- $_ := set $service "tls_cert_file" (printf "%s/tls/tls.crt" $folder) -}}
{{- $_ := set $service "tls_key_file" (printf "%s/tls/tls.key" $folder) -}}
{{- end -}}
{{- if .Values.apiServer.token.enabled -}}
{{- $_ := set $kubernetes "tokens_file" (printf "%s/tokens/kubernetes-token" $folder) -}}
{{- end -}}
{{- if .Values.apiServer.clientCa -}}
{{- $_ := set $kubernetes "client_ca_file" (printf "%s/configuration/client-ca.crt" $folder) -}}
{{- end -}}
{{- if .Values.rules -}}
{{- $_ := set $kubernetes "rules_path" (printf "%s/configuration/rules.yaml" $folder) -}}
{{- end -}}
{{- if not .Values.rights.followRbac -}}
{{- $_ := set $kubernetes "rights" "every" -}}
{{- end -}}
{{- if include "blazar-enforcement.adminPort" . -}}
{{- $_ := set $service "admin_host" (default "0.0.0.0" (get .Values.configuration.service "host")) -}}
{{- end -}}
{{- $own := dict "service" $service "kubernetes" $kubernetes -}}
{{- range $section, $options := $own -}}
{{- range $name, $_ := $options -}}
{{- $variable := printf "OS_%s__%s" (upper $section) (upper $name) -}}
{{- range $.Values.extraEnv -}}
{{- if eq .name $variable -}}
{{- fail (printf "extraEnv: %s: the chart sets this option by other values" $variable) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $sections := mustMergeOverwrite (dict) (dict "service" (dict) "kubernetes" (dict)) (deepCopy .Values.configuration) -}}
{{- range $section, $options := $sections }}

[{{ $section }}]
{{- $set := default (dict) (get $own $section) }}
{{- range $name, $value := $options }}
{{- if hasKey $set $name }}
{{- fail (printf "configuration.%s.%s: the chart sets it by other values" $section $name) }}
{{- end }}
{{ include "blazar-enforcement.option" (dict "section" $section "name" $name "value" $value) }}
{{- end }}
{{- range $name, $value := $set }}
{{ include "blazar-enforcement.option" (dict "section" $section "name" $name "value" $value) }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
A webhook configuration of etc/kubernetes, for this release. The one for workloads goes with the option `workloads`: it warns,
and holds nothing up, or it refuses, or is not there. `failurePolicy` of the one for policies
stays too: a broken policy must not get in because nobody looked.
*/}}
{{- define "blazar-enforcement.webhookConfiguration" -}}
{{- $root := .root -}}
{{- $object := $root.Files.Get .file | fromYaml -}}
{{- $knowsConditions := semverCompare ">=1.27-0" $root.Capabilities.KubeVersion.Version -}}
{{- $exempt := concat (list $root.Release.Namespace "kube-system") $root.Values.webhooks.exemptNamespaces | uniq -}}
{{- $webhooks := list -}}
{{- $kubernetes := default (dict) $root.Values.configuration.kubernetes -}}
{{- $workloads := default "warn" (get $kubernetes "workloads") -}}
{{- $asked := $object.webhooks -}}
{{- if and (eq $object.kind "ValidatingWebhookConfiguration") (or $root.Values.rules (get $kubernetes "rules_path")) -}}
{{- $asked = concat $asked ($root.Files.Get "files/rules-webhook-configuration.yaml" | fromYaml).webhooks -}}
{{- end -}}
{{- range $webhook := $asked -}}
{{- $isForWorkloads := hasPrefix "workloads." $webhook.name -}}
{{- if not (and $isForWorkloads (eq $workloads "ignore")) -}}
{{- if and $isForWorkloads (eq $workloads "refuse") -}}
{{- $_ := set $webhook "failurePolicy" "Fail" -}}
{{- end -}}
{{- $path := $webhook.clientConfig.service.path | trimSuffix "/token-put-by-kustomize" -}}
{{- if $root.Values.apiServer.token.enabled -}}
{{- $path = printf "%s/%s" $path (include "blazar-enforcement.token" (dict "root" $root "key" "kubernetes-token" "given" $root.Values.apiServer.token.value)) -}}
{{- end -}}
{{- $client := dict "service" (dict "name" (include "blazar-enforcement.fullname" $root) "namespace" $root.Release.Namespace "path" $path) -}}
{{- if eq $root.Values.certificates.mode "secret" -}}
{{- $_ := set $client "caBundle" (required "certificates.secret.caBundle is needed if certificates.mode is secret" $root.Values.certificates.secret.caBundle | b64enc) -}}
{{- end -}}
{{- $_ := set $webhook "clientConfig" $client -}}
{{- $_ := set $webhook "name" (printf "%s.%s.scheduling.blazar-enforcement" (splitList "." $webhook.name | first) (include "blazar-enforcement.clusterName" $root)) -}}
{{- if hasKey $webhook "namespaceSelector" -}}
{{- $_ := set $webhook "namespaceSelector" (dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" $exempt))) -}}
{{- end -}}
{{- if eq $webhook.failurePolicy "Fail" -}}
{{- $_ := set $webhook "timeoutSeconds" $root.Values.webhooks.timeoutSeconds -}}
{{- if hasKey $webhook "namespaceSelector" -}}
{{- $_ := set $webhook "failurePolicy" $root.Values.webhooks.failurePolicy -}}
{{- end -}}
{{- end -}}
{{- if not $knowsConditions -}}
{{- $webhook = unset $webhook "matchConditions" -}}
{{- end -}}
{{- $webhooks = append $webhooks $webhook -}}
{{- end -}}
{{- end -}}
{{- $annotations := dict -}}
{{- if eq $root.Values.certificates.mode "certManager" -}}
{{- $annotations = dict "cert-manager.io/inject-ca-from" (printf "%s/%s" $root.Release.Namespace (include "blazar-enforcement.fullname" $root)) -}}
{{- end -}}
apiVersion: {{ $object.apiVersion }}
kind: {{ $object.kind }}
metadata:
  {{- include "blazar-enforcement.metadata" (dict "root" $root "name" (include "blazar-enforcement.clusterName" $root) "annotations" $annotations) | nindent 2 }}
webhooks:
  {{- toYaml $webhooks | nindent 2 }}
{{- end -}}
