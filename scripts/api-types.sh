#!/usr/bin/env bash
# Writes the types of the API's bodies, which tests and scripts use, from docs/openapi.json to
# tests/support/api/. Git ignores them: only the compiler reads them, and `npm run types` generates them
# before it compiles.
#
# Run it through npm (`npm run types`), which puts the right Node on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

node "$(openapi_generator)" --file tests/support/openapi-ts.config.ts --no-log-file --silent
