#!/usr/bin/env bash
# Deploys the worker and says what was deployed: bundle digest and size. With --dry-run, or where
# no account or database is set up, everything happens but the upload.
#
# Run it through npm (`npm run deploy`), which puts the right Node on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
export WRANGLER_SEND_METRICS=false

scripts/build-wasm.sh
export GATEWARD_PREBUILT=1

arguments=("$@")
if [ $# -eq 0 ]; then
  # The database id that wrangler.toml has until one was created (docs/operations.md).
  placeholder="00000000-0000-0000-0000-000000000000"
  if grep -q "^database_id = \"$placeholder\"" wrangler.toml; then
    echo "gateward: dry run, because wrangler.toml names no database yet (docs/operations.md)" >&2
    arguments=(--dry-run)
  elif [ -z "${CLOUDFLARE_API_TOKEN:-}" ] && ! wrangler whoami --json >/dev/null 2>&1; then
    echo "gateward: dry run, because no Cloudflare account is set up (\`npx wrangler login\`)" >&2
    arguments=(--dry-run)
  fi
fi

commit="$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
# ${a[@]+"${a[@]}"}: bash 3.2 calls an empty array unset.
wrangler deploy --var "COMMIT:$commit" ${arguments[@]+"${arguments[@]}"}
WRANGLER_LOG=error node scripts/version.mjs
