#!/usr/bin/env bash
# Builds a worker's crate (default: worker/edge) to <crate>/build/index.js. Does nothing if that file is
# newer than all its sources.
#
#   scripts/build-wasm.sh [bench/wasm]
#
# GATEWARD_PROFILE=release    for deployment, optimised by wasm-opt (the default)
# GATEWARD_PROFILE=wasm-test  for `make start` and `make test`: the same code, built in a fraction of
#                             the time
# GATEWARD_PREBUILT=1         do nothing, because a target has just built (wrangler runs this script too)
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${GATEWARD_PREBUILT:-}" = 1 ] && exit 0

scripts/toolchain.sh
. scripts/tools.sh

crate="${1:-worker/edge}"
sources=(policies worker)
[ "$crate" = bench/wasm ] && sources+=(bench/wasm/{Cargo.toml,src} bench/core/{Cargo.toml,src})
profile="${GATEWARD_PROFILE:-release}"
case "$profile" in
  release) arguments=(--release) ;;
  wasm-test) arguments=(--profile wasm-test --no-opt) ;;
  *) echo "gateward: GATEWARD_PROFILE must be \`release\` or \`wasm-test\`, not \`$profile\`" >&2; exit 1 ;;
esac

# The stamp has the time at which the build started. So a source that was saved during the build counts
# as newer.
build="$crate/build"
stamp="$build/.built-$profile"
if [ -f "$stamp" ] && [ -f "$build/index.js" ]; then
  newer="$(find Cargo.toml Cargo.lock rust-toolchain.toml scripts/build-wasm.sh scripts/tools.sh docs/openapi.json \
    "${sources[@]}" \( -path '*/build' -o -path '*/tests' -o -path policies/cases \) -prune \
    -o -newer "$stamp" -print)"
  [ -z "$newer" ] && exit 0
fi

echo "gateward: building $crate, profile $profile (minutes the first time, then seconds)" >&2
mkdir -p "$build"
rm -f "$build"/.built-*
touch "$build/.building"

# Use local binaries, so that worker-build downloads nothing.
export WASM_BINDGEN_BIN="$wasm_bindgen_root/bin/wasm-bindgen"
export ESBUILD_BIN="$PWD/node_modules/.bin/esbuild"
export WASM_OPT_BIN="$PWD/node_modules/.bin/wasm-opt"
# wasm-opt is a Node program.
export PATH="$PWD/node_modules/.bin:$PATH"
# What io.js imports; esbuild finds it by this variable.
mkdir -p "$build/modules"
node -p 'JSON.stringify(JSON.parse(fs.readFileSync("docs/openapi.json", "utf8")))' > "$build/modules/openapi.txt"
export NODE_PATH="$PWD/$build/modules"
(cd "$crate" && "$worker_build_root/bin/worker-build" "${arguments[@]}")
if [ "$profile" = release ]; then
  # worker-build keeps the names of functions. They are useful for debuggers only, and take one
  # fourteenth of the upload. So they are removed from what is deployed; named.wasm keeps them. The
  # enabled features are those that worker-build uses.
  mv "$build/index_bg.wasm" "$build/named.wasm"
  "$WASM_OPT_BIN" --strip-debug --enable-mutable-globals --enable-sign-ext \
    --enable-nontrapping-float-to-int --enable-bulk-memory --enable-multivalue \
    --enable-reference-types --enable-exception-handling \
    "$build/named.wasm" -o "$build/index_bg.wasm"
fi
mv "$build/.building" "$stamp"
