#!/usr/bin/env bash
# Everything the real rig needs on a Debian machine, from nothing: Debian packages, npm packages, Go programs and the
# Python client. Run it again at will: what is there stays. Go (1.26 or newer) has to be there already.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(iproute2 iptables openssl util-linux python3-venv nghttp2-proxy chromium)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

[ -x node_modules/.bin/node ] || npm ci --no-audit --no-fund
npm exec --no -- node test/real/build.ts "$@"
