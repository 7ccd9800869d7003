#!/usr/bin/env bash
# Writes a Debian package with ev, its own Node and systemd units, for the architecture of this machine. Needs npm ci
# to have run, and dpkg-deb.
#
#   bash tools/deb.sh [FOLDER]        writes FOLDER/evmail_VERSION_ARCH.deb, by default in packages/, and prints its path
#
# EV_PACKAGES names a folder with the packages that `npm run pack` has written; otherwise it runs.
# EV_DEB_OPTIONS are the options of dpkg-deb for compression: xz takes one to two minutes and gives the smallest file.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-packages}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root="$work/root"
lib="$root/usr/lib/ev"
version=$(node -p 'require("./package.json").version')
case $(uname -m) in
  x86_64) arch=amd64 platform=linux-x64 ;;
  aarch64) arch=arm64 platform=linux-arm64 ;;
  *) echo "There is no Node for $(uname -m) in tools/node-runtime." >&2 && exit 1 ;;
esac
runtime="node_modules/node-$platform"
[ -x "$runtime/bin/node" ] || { echo "$runtime is missing. Run: npm ci" >&2 && exit 1; }

main() {
  install_program
  install_service
  write_control
  mkdir -p "$out"
  local file="$out/evmail_${version}_$arch.deb"
  # Files belong to root, and have the time of the version: the same sources give the same package.
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null || date +%s) \
    dpkg-deb --root-owner-group ${EV_DEB_OPTIONS:--Zxz} --build "$root" "$file" > /dev/null
  echo "$file"
}

# The npm packages as users install them, with the versions and hashes of package-lock.json.
install_program() {
  local packages="$work/packages"
  if [ -n "${EV_PACKAGES:-}" ]; then
    packages=$(realpath "$EV_PACKAGES")
  else
    node tools/pack.mjs "$packages" >&2
  fi
  mkdir -p "$work/installed" "$lib/bin"
  cp package-lock.json "$work/installed/"
  echo '{ "private": true }' > "$work/installed/package.json"
  (cd "$work/installed" && npm install --prefer-offline --ignore-scripts --no-audit --no-fund --install-links --loglevel error \
    "$packages"/evmail-engine "$packages"/evmail-client "$packages"/evmail > /dev/null)
  mv "$work/installed/node_modules" "$lib/"
  rm "$lib/node_modules/.package-lock.json"
  # The sources of SQLite, and its builds for other systems.
  local sqlite="$lib/node_modules/better-sqlite3"
  rm -r "$sqlite/deps" "$sqlite/src"
  find "$sqlite/prebuilds" -type f ! -name "$platform.node" -delete
  cp "$runtime/bin/node" "$lib/bin/node"
  cp "$runtime/LICENSE" "$lib/LICENSE.node"
  install -D -m 755 deploy/deb/ev "$root/usr/bin/ev"
  install -D -m 644 /dev/stdin "$root/usr/share/bash-completion/completions/ev" < <(node bin/ev.js completion bash)
  local doc="$root/usr/share/doc/evmail"
  install -D -m 644 LICENSE "$doc/copyright"
  gzip -9n < CHANGELOG.md > "$doc/changelog.gz"
}

# The units of deploy/, each with a file that says what differs here.
install_service() {
  local units="$root/usr/lib/systemd/system" name
  install -D -m 644 -t "$units" deploy/ev.service deploy/ev-worker.service deploy/ev-backup.service deploy/ev-backup.timer
  for name in ev.service ev-worker.service ev-backup.service; do
    install -D -m 644 "deploy/deb/$name.conf" "$units/$name.d/package.conf"
  done
  install -D -m 640 deploy/deb/config.json "$root/etc/ev/config.json"
}

write_control() {
  mkdir -p "$root/DEBIAN"
  install -m 755 deploy/deb/postinst deploy/deb/prerm deploy/deb/postrm "$root/DEBIAN/"
  # An upgrade keeps the settings of the administrator.
  echo /etc/ev/config.json > "$root/DEBIAN/conffiles"
  (cd "$root" && find etc usr -type f -exec md5sum {} +) > "$root/DEBIAN/md5sums"
  cat > "$root/DEBIAN/control" << EOF
Package: evmail
Version: $version
Architecture: $arch
Maintainer: $(node -p 'require("./package.json").author')
Installed-Size: $(du -sk "$root" | cut -f 1)
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6, init-system-helpers, passwd
Section: mail
Priority: optional
Description: finds out whether email addresses can receive mail
 Command line and HTTP service with a dashboard. It asks the mail servers of
 the domain and never sends a message. This package has a Node of its own.
EOF
}

main
