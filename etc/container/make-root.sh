#!/bin/sh
# make-root.sh FOLDER: the files of the image, but the compiled code, as the Dockerfile builds them: Node.js, the libraries that it
# links to, production modules, and `env` and `sleep`, which the command's first line and the preStop of etc/kubernetes need.
# No shell, package manager or compiler: what is not there need not be updated.
set -eu
root=$1
app=$root/app
mkdir -p "$app" "$root/etc" "$root/tmp" "$root/usr/local/bin" "$root/usr/bin" "$root/var/lib/dpkg/status.d" /state
chmod 1777 "$root/tmp"

cp package.json LICENSE healthcheck.mjs "$app/"
cp -R node_modules "$app/"
# Types and maps are for those who build.
find "$app/node_modules" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.md' \) -delete
find "$app/node_modules" -type d -empty -delete
# What only a debugger reads: a seventh of Node.js.
strip -o "$root/usr/local/bin/node" /usr/local/bin/node
cp /usr/bin/env /usr/bin/sleep "$root/usr/bin/"
ln -s /app/dist/src/cli/main.js "$root/usr/local/bin/blazar-enforcement"

# Scanners look for packages with known faults in status.d, as in other images without dpkg.
libraries=$(ldd /usr/local/bin/node /usr/bin/env |
  sed -n 's/^.*[[:space:]]\(\/[^ ]*\) (0x.*$/\1/p' | sort -u)
for file in $libraries /usr/bin/env; do
  mkdir -p "$root$(dirname "$file")"
  cp -L "$file" "$root$file"
  package=$(dpkg-query --search "*/${file##*/}" | sed -n '1s/[:,].*//p')
  dpkg-query --status "$package" >"$root/var/lib/dpkg/status.d/$package"
  mkdir -p "$root/usr/share/doc/$package"
  cp "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/"
done
cp /etc/os-release "$root/etc/"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
printf 'root:x:0:0:root:/:/nonexistent\nnobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
chmod -R a+rX "$root"
