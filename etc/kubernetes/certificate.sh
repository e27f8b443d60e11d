#!/bin/sh
# Usage: certificate.sh [FOLDER]
# Makes the certificate of the policy service. On the first run it also makes the authority that signs it, and two tokens: one
# that the API server sends as the last part of a webhook's path, and one that opens the console. Writes into FOLDER,
# by default `certificate` beside this file, and prints the authority in the form that `caBundle` needs.
# Before the certificate expires, run it again, then `kubectl apply -k`. The authority stays, so old and new pods are trusted.
# Only this script needs ca.key: you can keep it elsewhere.
set -eu
folder=${1:-"$(dirname "$0")/certificate"}
name=blazar-enforcement.blazar-enforcement.svc
authority_days=3650
certificate_days=730

umask 077
mkdir -p "$folder"
cd "$folder"
# Keys are for no repository.
[ -e .gitignore ] || echo '*' >.gitignore

# Do not use the openssl.cnf of this machine.
cat >openssl.cnf <<END
[req]
distinguished_name = subject
prompt = no
[subject]
commonName = $name
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:$name
END
trap 'rm -f openssl.cnf tls.csr tls.crt.new tls.key.new' EXIT

if [ -e ca.crt ] && [ ! -e ca.key ]; then
  echo "$PWD/ca.key is not there: put it back, or remove ca.crt for a new authority" >&2
  exit 1
fi
if [ ! -e ca.crt ]; then
  openssl ecparam -name prime256v1 -genkey -noout -out ca.key
  openssl req -x509 -new -sha256 -days "$authority_days" -config openssl.cnf -extensions authority \
    -subj '/CN=blazar-enforcement webhooks' -key ca.key -out ca.crt
fi
for token in kubernetes-token service-token; do
  # Without a line break: it becomes part of a path, where Kubernetes accepts small letters, digits, dashes and dots.
  [ -s "$token" ] || openssl rand -hex 32 | tr -d '\n' >"$token"
done
openssl ecparam -name prime256v1 -genkey -noout -out tls.key.new
openssl req -new -sha256 -config openssl.cnf -key tls.key.new -out tls.csr
openssl x509 -req -sha256 -days "$certificate_days" -set_serial "0x$(openssl rand -hex 16)" \
  -extfile openssl.cnf -extensions server -in tls.csr -CA ca.crt -CAkey ca.key -out tls.crt.new 2>/dev/null
mv tls.key.new tls.key
mv tls.crt.new tls.crt

echo "$PWD/tls.crt for $name: $(openssl x509 -in tls.crt -noout -enddate)" >&2
openssl base64 -A -in ca.crt
echo
