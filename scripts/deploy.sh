#!/usr/bin/env bash
# Deploys the worker and prints the bundle's digest and the size. With --dry-run, it does everything except the upload.
# If no account or database is set up, it does the same, and exits with 1, because nothing was deployed.
#
# Run it with `npm run deploy`: npm puts the right Node on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
export WRANGLER_SEND_METRICS=false

scripts/build-wasm.sh
export GATEWARD_PREBUILT=1

arguments=("$@")
missing=""
if [ $# -eq 0 ]; then
  # The database id in wrangler.toml before you create a database (docs/operations.md).
  placeholder="00000000-0000-0000-0000-000000000000"
  if grep -q "^database_id = \"$placeholder\"" wrangler.toml; then
    missing="wrangler.toml has no \`database_id\` yet (docs/operations.md)"
  elif [ -z "${CLOUDFLARE_API_TOKEN:-}" ] && ! wrangler whoami --json >/dev/null 2>&1; then
    missing="no Cloudflare account is set up (\`npx wrangler login\`, or CLOUDFLARE_API_TOKEN)"
  fi
  [ -z "$missing" ] || arguments=(--dry-run)
fi

# With `-dirty`, if a file differs from the commit.
commit="$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)"
# ${a[@]+"${a[@]}"}, because bash 3.2 treats an empty array as unset.
wrangler deploy --var "COMMIT:$commit" ${arguments[@]+"${arguments[@]}"}
WRANGLER_LOG=error node scripts/version.ts

if [ -n "$missing" ]; then
  echo "gateward: nothing was deployed, because $missing" >&2
  exit 1
fi
