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

# The variable that names a Python interpreter, and what is installed for it.
python_environments=(
  "GATEWARD_PYTHON tests/clients/requirements.txt"
  "GATEWARD_GENERATOR_PYTHON tests/clients/openapi/requirements.txt"
)
for entry in "${python_environments[@]}"; do
  read -r variable requirements <<<"$entry"
  python="$tool_cache/python-$(sha256sum "$requirements" | cut -c1-16)"
  if [ ! -x "$python/bin/python" ] && command -v python3 >/dev/null; then
    echo "gateward: installing $requirements for the tests" >&2
    rm -rf "$python.new"
    python3 -m venv "$python.new" >&2
    "$python.new/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements" >&2
    mv "$python.new" "$python"
  fi
  if [ -x "$python/bin/python" ]; then echo "$variable=$python/bin/python"; else missing Python; fi
done

# The TypeScript generator needs an older compiler than the tests, so its packages are apart.
packages="tests/clients/openapi"
modules="$tool_cache/generator-$(sha256sum "$packages/package-lock.json" | cut -c1-16)"
if [ ! -d "$modules" ]; then
  echo "gateward: installing the TypeScript generator of the tests" >&2
  rm -rf "$modules.new"
  mkdir -p "$modules.new"
  cp "$packages/package.json" "$packages/package-lock.json" "$modules.new"
  npm ci --silent --ignore-scripts --no-audit --no-fund --prefix "$modules.new" >&2
  mv "$modules.new" "$modules"
fi
echo "GATEWARD_GENERATOR_TYPESCRIPT=$modules/node_modules/@hey-api/openapi-ts/bin/run.js"

program="$tool_cache/upload-$(sha256sum tests/clients/upload.go | cut -c1-16)"
if [ ! -x "$program" ] && command -v go >/dev/null; then
  echo "gateward: building the Go client of the tests" >&2
  go build -o "$program" tests/clients/upload.go
fi
if [ -x "$program" ]; then echo "GATEWARD_GO_UPLOAD=$program"; else missing Go; fi
