#!/usr/bin/env bash
# Everything the real rig needs on a Debian machine, from nothing: Debian packages, npm packages, Go programs and the
# Python client. Run it again at will: what is there stays. Go (1.26 or newer) has to be there already.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(iproute2 iptables openssl util-linux python3-venv nghttp2-proxy chromium curl)
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
  # A machine that had all packages above has perhaps no list of packages yet.
  fetch() { (cd "$folder" && apt-get download -qq prometheus 2>/dev/null && dpkg-deb -x prometheus_*.deb .); }
  if fetch || { apt-get update -qq && fetch; }; then
    version=$("$folder/usr/bin/promtool" --version 2>&1 | sed -n 's/^promtool, version \([0-9.]*\).*/\1/p')
    mkdir -p "$cache/prometheus-$version"
    cp "$folder/usr/bin/promtool" "$folder/usr/bin/prometheus" "$cache/prometheus-$version/"
  else
    echo "Cannot fetch Debian's prometheus: what needs it will skip" >&2
  fi
  rm -r "$folder"
fi

[ -x node_modules/.bin/node ] || npm ci --no-audit --no-fund
npm exec --no -- node test/real/build.ts "$@"
