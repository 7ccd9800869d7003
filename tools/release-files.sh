#!/usr/bin/env bash
# Makes the files of a release in packages/, for the architecture of this machine: the npm packages with their bill of
# materials, the Debian package, the container image, and SHA256SUMS. Needs root, npm ci and
# tools/install-container-tools.sh.
#
#   sudo bash tools/release-files.sh
set -euo pipefail
cd "$(dirname "$0")/.."

npm run --silent pack
EV_PACKAGES="$PWD/packages" bash tools/deb.sh packages
bash tools/image.sh packages
cd packages
sha256sum -- *.tgz *.cdx.json *.deb *.tar > SHA256SUMS
cat SHA256SUMS
