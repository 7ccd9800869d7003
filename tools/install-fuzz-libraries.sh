#!/usr/bin/env bash
# Unpacks the C and C++ libraries of Debian 13, for `npm run fuzz` on a Debian with an older glibc:
# the native part of Jazzer.js needs glibc 2.38. Nothing is installed into the system.
#
#   sudo bash tools/install-fuzz-libraries.sh
#
# EV_FUZZ_LIBRARIES names another folder than /opt/ev-fuzz. May be run again: what is there is kept.
set -euo pipefail

ROOT=${EV_FUZZ_LIBRARIES:-/opt/ev-fuzz}
PACKAGES=(libc6 libgcc-s1 libstdc++6)
GLIBC_MIN=2.38

main() {
  local version
  version=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
  if dpkg --compare-versions "$version" ge "$GLIBC_MIN"; then
    echo "This system has glibc $version: nothing is needed."
    return
  fi
  if [ -e "$ROOT/.complete" ]; then
    echo "The libraries are in $ROOT already."
    return
  fi
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/debs" "$ROOT"
  echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main' \
    > "$folder/sources.list"
  echo 'Reading the list of packages of Debian 13 …'
  fetch update
  (cd "$folder/debs" && fetch download "${PACKAGES[@]}")
  for deb in "$folder/debs"/*.deb; do
    echo "Unpacking $(basename "$deb") …"
    dpkg-deb --extract "$deb" "$ROOT"
  done
  touch "$ROOT/.complete"
  echo "The libraries are in $ROOT."
}

# apt with lists and a cache of its own, so that the system keeps its release.
fetch() {
  apt-get -qq \
    -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=- \
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" \
    -o APT::Sandbox::User=root "$@"
}

main
