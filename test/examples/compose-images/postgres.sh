#!/bin/sh
# As the entry point of the official image: makes the database at the first start, and serves the network.
set -eu
bin=$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/data
if [ ! -e "$data/PG_VERSION" ]; then
  install -d -o postgres -g postgres /var/lib/postgresql "$data"
  chmod 700 "$data"
  echo "$POSTGRES_PASSWORD" >/tmp/password
  chmod 644 /tmp/password
  setpriv --reuid postgres --regid postgres --clear-groups "$bin/initdb" --no-sync --auth-host scram-sha-256 --auth-local trust \
    --username "$POSTGRES_USER" --pwfile /tmp/password --pgdata "$data"
  rm /tmp/password
  echo "CREATE DATABASE $POSTGRES_DB" |
    setpriv --reuid postgres --regid postgres --clear-groups "$bin/postgres" --single -D "$data" postgres
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
fi
exec setpriv --reuid postgres --regid postgres --clear-groups "$bin/postgres" -D "$data" -c 'listen_addresses=*' -c unix_socket_directories=/tmp
