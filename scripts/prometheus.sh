#!/usr/bin/env bash
# Prints the path of a promtool for the tests: the installed one, or that of Debian's package `prometheus`, unpacked in
# node_modules/.cache. Needs no root and starts no service.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v promtool; then exit 0; fi

cache="$PWD/node_modules/.cache/prometheus"
promtool="$cache/root/usr/bin/promtool"
if [ ! -x "$promtool" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "gateward: promtool is missing: install Prometheus, then try again" >&2
    exit 1
  fi
  echo "gateward: fetching promtool (about 10 seconds)" >&2
  rm -rf "$cache"
  mkdir -p "$cache/state/lists/partial" "$cache/archives/partial"
  cd "$cache"
  # The machine's package lists may be missing or old, and only root can update them.
  own=(-o "Dir::State=$cache/state" -o "Dir::Cache=$cache" -o APT::Sandbox::User= -o "Dir::State::status=/var/lib/dpkg/status")
  {
    apt-get download -q prometheus || { apt-get "${own[@]}" update -q && apt-get "${own[@]}" download -q prometheus; }
    dpkg-deb --extract prometheus_*.deb unpacked
  } >&2
  mv unpacked root
  rm -rf state archives ./*.bin ./*.deb
fi
echo "$promtool"
