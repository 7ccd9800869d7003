#!/usr/bin/env bash
# Unpacks real mail and DNS servers, a PostgreSQL pooler and a TLS scanner from Debian packages, for the slow tests. Nothing is installed into the system:
# the packages (three mail servers cannot be installed beside one another) are unpacked into one folder, none of
# their scripts runs and no daemon starts. Only the system users are made that the servers insist on.
#
#   sudo bash tools/install-mail-servers.sh
#
# EV_MAIL_SERVERS names another folder than /opt/ev-mail-servers. May be run again: what is there is kept.
set -euo pipefail

ROOT=${EV_MAIL_SERVERS:-/opt/ev-mail-servers}
# Each line is resolved by itself, as the mail servers exclude one another.
SERVERS=(
  'nsd unbound'
  'postfix postgrey'
  'exim4-daemon-heavy exim4-base'
  'opensmtpd'
  'pgbouncer'
  'sslscan'
)
USERS=(postfix postdrop Debian-exim opensmtpd opensmtpq)

main() {
  local stamp="$ROOT/.packages" wanted
  wanted=$(printf '%s\n' "${SERVERS[@]}")
  [ "$(id -u)" = 0 ] || give_up 'This needs root: sudo bash tools/install-mail-servers.sh'
  command -v apt-get dpkg-deb > /dev/null ||
    give_up "There is no apt here. The tests want the programs of these Debian packages in $ROOT, as dpkg -x unpacks them:" "$wanted"
  add_users
  if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
    echo "The mail servers are in $ROOT already."
    return
  fi
  local packages
  packages=$(resolve) || { echo 'Reading the lists of packages …'; apt-get -qq update || true; packages=$(resolve); } ||
    give_up 'These packages cannot be found (Debian 12 has them all):' "$wanted"
  unpack $packages
  echo "$wanted" > "$stamp"
  echo "The mail servers are in $ROOT."
}

give_up() {
  printf '%s\n' "$@" >&2
  exit 1
}

# The packages themselves, whether installed or not, and those libraries that the system lacks.
resolve() {
  local group
  for group in "${SERVERS[@]}"; do
    printf '%s\n' $group
    LC_ALL=C apt-get install --simulate --no-install-recommends $group 2> /dev/null |
      awk '$1 == "Inst" && $3 !~ /^\[/ { print $2 }' || return 1
  done | sort -u
}

unpack() {
  local deb
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  echo "Fetching $# packages …"
  (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download "$@") || {
    echo 'Reading the lists of packages …'
    apt-get -qq update || true
    (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download "$@")
  }
  mkdir -p "$ROOT"
  chmod 755 "$ROOT"
  for deb in "$folder"/*.deb; do
    echo "Unpacking $(basename "$deb") …"
    dpkg-deb --extract "$deb" "$ROOT"
  done
}

# Each with a group of its own, without a home or a way to log in.
add_users() {
  local user
  for user in "${USERS[@]}"; do
    getent group "$user" > /dev/null || groupadd --system "$user"
    getent passwd "$user" > /dev/null ||
      useradd --system --gid "$user" --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin "$user"
  done
}

main
