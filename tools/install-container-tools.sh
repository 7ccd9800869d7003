#!/usr/bin/env bash
# Installs what builds and tests the Debian package and the container image: mmdebstrap and buildah, 14 MB. Then makes the
# root of a minimal Debian that both start from, 60 MB of downloads.
#
#   sudo bash tools/install-container-tools.sh
#
# EV_DEBIAN_ROOT names another file than /opt/ev-debian-root.tar. May be run again: what is there is kept.
set -euo pipefail

ROOT=${EV_DEBIAN_ROOT:-/opt/ev-debian-root.tar}
SUITE=bookworm

[ "$(id -u)" = 0 ] && command -v apt-get > /dev/null ||
  { echo 'This needs root on Debian: sudo bash tools/install-container-tools.sh' >&2 && exit 1; }
for program in mmdebstrap buildah; do
  command -v "$program" > /dev/null && continue
  apt-get -qq install -y --no-install-recommends "$program" > /dev/null || {
    echo 'Reading the lists of packages …'
    apt-get -qq update || true
    apt-get -qq install -y --no-install-recommends "$program" > /dev/null
  }
done
if [ -e "$ROOT" ]; then
  echo "The Debian root is in $ROOT already."
else
  # Device nodes cannot be unpacked everywhere; who uses the root mounts /dev.
  mmdebstrap --quiet --variant=apt --include=ca-certificates "$SUITE" - | tar --delete ./dev > "$ROOT.new"
  mv "$ROOT.new" "$ROOT"
  echo "The Debian root is in $ROOT."
fi
