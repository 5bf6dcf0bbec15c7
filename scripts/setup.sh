#!/usr/bin/env bash
# Installs the toolchain and the npm packages for a fresh clone. Prints nothing if nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null; then
  echo "gateward: npm is missing: install Node.js 20 or newer (https://nodejs.org), then try again" >&2
  exit 1
fi
scripts/toolchain.sh

# npm writes this file at the end of every complete install.
installed="node_modules/.package-lock.json"
if [ ! -f "$installed" ] || [ package-lock.json -nt "$installed" ]; then
  echo "gateward: installing npm packages (about 20 seconds)" >&2
  npm ci --no-audit --no-fund --loglevel=error
fi
