#!/usr/bin/env bash
# Installs the clients in other languages that the tests run. With `--all`, also those that only
# `make interop` runs. Prints their paths as assignments of environment variables. If a language is not
# installed, its tests are skipped; in CI (CI=true) and with `--all` that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

all="${1:-}"
uv_root="$tool_cache/uv-0.13.9"
# The versions for which the pinned packages have wheels.
python_versions=">=3.11,<3.14"

missing() {
  echo "gateward: $1 is missing: tests of its clients are skipped" >&2
  [ "${CI:-}" != true ] && [ -z "$all" ]
}

# Prints the path of a Python interpreter that can run the pinned packages, if there is one.
find_python() {
  command -v python3 >/dev/null || return 1
  if [ ! -x "$uv_root/bin/uv" ]; then
    python3 -m venv "$uv_root" >&2
    "$uv_root/bin/python" -m pip install -q --disable-pip-version-check "uv==${uv_root##*-}" >&2
  fi
  "$uv_root/bin/uv" python find --no-python-downloads "$python_versions"
}

# Prints the path of the environment with these requirements. Creates it if it does not exist.
python_environment() { # requirements
  local environment
  environment="$tool_cache/python-$(hash_of "$1")"
  if [ ! -x "$environment/bin/python" ]; then
    echo "gateward: installing $1" >&2
    rm -rf "$environment.new"
    "$uv_root/bin/uv" venv -q --python "$python" "$environment.new" >&2
    "$uv_root/bin/uv" pip install -q --python "$environment.new/bin/python" --requirement "$1" >&2
    mv "$environment.new" "$environment"
  fi
  echo "$environment"
}

# The environments in tests/interop/python that `make test` uses.
interop="mcp-1.9 mcp-2.3"
if [ -n "$all" ]; then
  interop=""
  for requirements in tests/interop/python/*.txt; do interop="$interop $(basename "$requirements" .txt)"; done
fi
environments=""
if python="$(find_python)"; then
  environment="$(python_environment tests/clients/requirements.txt)"
  echo "GATEWARD_PYTHON=$environment/bin/python"
  environment="$(python_environment tests/clients/openapi/requirements.txt)"
  echo "GATEWARD_GENERATOR_PYTHON=$environment/bin/python"
  environment="$(python_environment tests/verifier/requirements.txt)"
  echo "GATEWARD_VERIFIER_PYTHON=$environment/bin/python"
  for name in $interop; do
    environment="$(python_environment "tests/interop/python/$name.txt")"
    environments="$environments,$name=$environment"
  done
else
  missing "Python $python_versions"
fi

if [ -n "$all" ]; then
  packages="$(npm_packages tests/interop/packages)"
  environments="$environments,packages=$packages"
fi
echo "GATEWARD_INTEROP=${environments#,}"

echo "GATEWARD_GENERATOR_TYPESCRIPT=$(openapi_generator)"

program="$tool_cache/upload-$(hash_of tests/clients/upload.go)"
if [ ! -x "$program" ] && command -v go >/dev/null; then
  echo "gateward: building the Go client of the tests" >&2
  go build -o "$program" tests/clients/upload.go
fi
if [ -x "$program" ]; then echo "GATEWARD_GO_UPLOAD=$program"; else missing Go; fi
