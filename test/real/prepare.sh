#!/usr/bin/env bash
# Everything the real rig needs on a Debian machine, from nothing: Debian packages, npm packages, Go programs and the
# Python client. Run it again at will: what is there stays. Go (1.26 or newer) has to be there already.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=(iproute2 iptables openssl util-linux python3-venv nghttp2-proxy chromium curl keepalived)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

# Of Prometheus and Alertmanager only their programs: the packages would start servers. Debian 12 has 2.42 and 0.25.
cache=${WATCHKEEPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/watchkeeper}
unpacked() { # package, its files; the first is a program that tells the version
  local package=$1 program=$(basename "$2") folder version; shift
  ls "$cache/${package#prometheus-}"-*/"$program" >/dev/null 2>&1 && return
  folder=$(mktemp -d)
  # A machine that had all packages above has perhaps no list of packages yet.
  fetch() { (cd "$folder" && apt-get download -qq "$package" 2>/dev/null && dpkg-deb -x "$package"_*.deb .); }
  if fetch || { apt-get update -qq && fetch; }; then
    version=$("$folder/$1" --version 2>&1 | sed -n 's/^[a-z]*, version \([0-9.]*\).*/\1/p')
    mkdir -p "$cache/${package#prometheus-}-$version"
    for one; do cp "$folder/$one" "$cache/${package#prometheus-}-$version/"; done
  else
    echo "Cannot fetch Debian's $package: what needs it will skip" >&2
  fi
  rm -r "$folder"
}
unpacked prometheus usr/bin/promtool usr/bin/prometheus
# Debian's Alertmanager reads these templates from one place only.
own=usr/share/prometheus/alertmanager
unpacked prometheus-alertmanager usr/bin/amtool usr/bin/prometheus-alertmanager "$own/default.tmpl" "$own/email.tmpl"
for template in default email; do
  [ -e "/$own/$template.tmpl" ] || install -D -m 644 -t "/$own" "$cache"/alertmanager-*/"$template.tmpl" || true
done

[ -x node_modules/.bin/node ] || npm ci
npm exec --no -- node test/real/build.ts "$@"
