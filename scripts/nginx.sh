#!/usr/bin/env bash
# Prints the path of an nginx for the tests: the installed one, or Debian's package, unpacked in
# node_modules/.cache. Needs no root and starts no service.
set -euo pipefail
cd "$(dirname "$0")/.."

# nginx may be in a directory for administrators, which is not on every user's PATH.
if PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v nginx; then exit 0; fi

cache="$PWD/node_modules/.cache/nginx"
nginx="$cache/root/usr/sbin/nginx"
if [ ! -x "$nginx" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "gateward: nginx is missing: install it, then try again" >&2
    exit 1
  fi
  echo "gateward: fetching nginx (about 10 seconds)" >&2
  rm -rf "$cache"
  mkdir -p "$cache/state/lists/partial" "$cache/archives/partial"
  cd "$cache"
  # The machine's package lists may be missing or old, and only root can update them.
  own=(-o "Dir::State=$cache/state" -o "Dir::Cache=$cache" -o APT::Sandbox::User= -o "Dir::State::status=/var/lib/dpkg/status")
  {
    apt-get download -q nginx || { apt-get "${own[@]}" update -q && apt-get "${own[@]}" download -q nginx; }
    dpkg-deb --extract nginx_*.deb unpacked
  } >&2
  mv unpacked root
  rm -rf state archives ./*.bin ./*.deb
fi
echo "$nginx"
