#!/bin/sh
# base-image.sh NAME FOLDER PODMAN…: builds the base image of the Dockerfile without an image registry: from
# Debian packages (debootstrap), and from Node.js, its headers and npm of the npm registry. NAME is like
# docker.io/library/node:24.21.0-bookworm-slim.
set -eu
name=$1
folder=$2
shift 2
if "$@" image exists "$name"; then
  exit
fi
version=${name#*:}
version=${version%%-*}
release=${name#*-}
release=${release%-slim}
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
trap 'rm -rf "$folder"' EXIT

debootstrap --variant=minbase --include=ca-certificates "$release" root http://deb.debian.org/debian
rm -rf root/var/cache/apt/archives/*.deb root/var/lib/apt/lists/*

cpu=$(node -p process.arch)
npm pack --silent "node-linux-$cpu@$version" npm@11
for archive in node-linux-*.tgz npm-*.tgz; do
  mkdir "${archive%.tgz}"
  tar -xzf "$archive" -C "${archive%.tgz}" --strip-components=1 --no-same-owner
done
mkdir -p root/usr/local/etc root/usr/local/lib/node_modules
cp node-linux-*/bin/node root/usr/local/bin/
cp -R node-linux-*/include root/usr/local/
mv npm-*/ root/usr/local/lib/node_modules/npm
for command in npm npx; do
  ln -s "../lib/node_modules/npm/bin/$command-cli.js" "root/usr/local/bin/$command"
  chmod 755 "root/usr/local/lib/node_modules/npm/bin/$command-cli.js"
done

# The registry and the certificate authorities of this machine.
cp /etc/ssl/certs/ca-certificates.crt root/etc/ssl/certs/
cat >root/usr/local/etc/npmrc <<EOF
registry=$(npm config get registry)
cafile=/etc/ssl/certs/ca-certificates.crt
EOF

# No prebuilt SQLite binary.
printf 'FROM scratch\nCOPY root /\nENV npm_config_build_from_source=true\nCMD ["node"]\n' >Dockerfile
"$@" build --quiet --layers=false --tag "$name" .
