#!/usr/bin/env bash
# Prepares the clients in other languages that the tests run, and prints where they are as
# assignments of environment variables. A language that is not installed is left out, and its tests
# are skipped; in CI (CI=true) it is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

missing() {
  echo "gateward: $1 is missing: tests of its clients are skipped" >&2
  [ "${CI:-}" != true ]
}

requirements="tests/clients/requirements.txt"
python="$tool_cache/python-$(sha256sum "$requirements" | cut -c1-16)"
if [ ! -x "$python/bin/python" ] && command -v python3 >/dev/null; then
  echo "gateward: installing the Python clients of the tests" >&2
  rm -rf "$python.new"
  python3 -m venv "$python.new" >&2
  "$python.new/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements" >&2
  mv "$python.new" "$python"
fi
if [ -x "$python/bin/python" ]; then echo "GATEWARD_PYTHON=$python/bin/python"; else missing Python; fi

program="$tool_cache/upload-$(sha256sum tests/clients/upload.go | cut -c1-16)"
if [ ! -x "$program" ] && command -v go >/dev/null; then
  echo "gateward: building the Go client of the tests" >&2
  go build -o "$program" tests/clients/upload.go
fi
if [ -x "$program" ]; then echo "GATEWARD_GO_UPLOAD=$program"; else missing Go; fi
