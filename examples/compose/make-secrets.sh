#!/bin/sh
# Writes a token for Blazar and a password for the database into .env, once.
set -eu
cd "$(dirname "$0")"
umask 077
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
if [ ! -e .env ]; then
  printf 'POLICY_TOKEN=%s\nLEDGER_PASSWORD=%s\n' "$(random)" "$(random)" >.env
fi
