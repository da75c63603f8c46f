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

# Of Prometheus only its programs: the package would start a server. 2.42 is what Debian 12 has.
cache=${WATCHKEEPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/watchkeeper}
if ! ls "$cache"/prometheus-*/promtool >/dev/null 2>&1; then
  folder=$(mktemp -d)
  (cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb .)
  version=$("$folder/usr/bin/promtool" --version 2>&1 | sed -n 's/^promtool, version \([0-9.]*\).*/\1/p')
  mkdir -p "$cache/prometheus-$version"
  cp "$folder/usr/bin/promtool" "$folder/usr/bin/prometheus" "$cache/prometheus-$version/"
  rm -r "$folder"
fi

[ -x node_modules/.bin/node ] || npm ci --no-audit --no-fund
npm exec --no -- node test/real/build.ts "$@"
