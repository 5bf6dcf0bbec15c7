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
  release | wasm-test) ;;
  *) echo "gateward: GATEWARD_PROFILE must be \`release\` or \`wasm-test\`, not \`$profile\`" >&2; exit 1 ;;
esac

# The stamp has the time at which the build started. So a source that was saved during the build counts
# as newer.
build="$crate/build"
stamp="$build/.built-$profile"
if [ -f "$stamp" ] && [ -f "$build/index.js" ]; then
  newer="$(find Cargo.toml Cargo.lock rust-toolchain.toml docs/openapi.json \
    scripts/{build-wasm.sh,tools.sh,order-functions.ts,wasm-module.ts} "${sources[@]}" \
    \( -path '*/build' -o -path '*/tests' -o -path policies/cases \) -prune -o -newer "$stamp" -print)"
  [ -z "$newer" ] && exit 0
fi

echo "gateward: building $crate, profile $profile (minutes the first time, then seconds)" >&2
mkdir -p "$build"
rm -f "$build"/.built-*
touch "$build/.building"

# wasm-opt is a Node program. The same Node runs scripts/order-functions.ts.
export PATH="$PWD/node_modules/.bin:$PATH"
package="$(sed -n 's/^name = "\(.*\)"/\1/p' "$crate/Cargo.toml" | head -1)"
# With this variable, wasm-bindgen's macros use the futures of js-sys.
WASM_BINDGEN_USE_JS_SYS=1 cargo build --lib --package "$package" --profile "$profile" --target "$wasm_target"

generated="$build/generated"
rm -rf "$generated"
# It has a directory of its own, because Cargo builds one thing at a time in each.
target="${CARGO_TARGET_DIR:-target}"
cargo run --quiet --package gateward-bindgen --target-dir "$target/bindgen" -- \
  "$target/$wasm_target/$profile/${package//-/_}.wasm" "$generated"
# workerd imports a compiled module, which wasm-bindgen writes as a source-phase import.
sed -i 's/^import source /import /' "$generated/index.js"

# The entry is bundled with what wasm-bindgen generated and with the document that io.js imports.
cp "$crate/src/entry.js" "$generated/"
mkdir -p "$generated/modules"
node -p 'JSON.stringify(JSON.parse(fs.readFileSync("docs/openapi.json", "utf8")))' > "$generated/modules/openapi.txt"
NODE_PATH="$PWD/$generated/modules" node_modules/.bin/esbuild "$generated/entry.js" --outfile="$build/index.js" \
  --bundle --minify --format=esm --external:./index_bg.wasm '--external:cloudflare:*' --log-level=warning

if [ "$profile" = release ]; then
  # Names of functions are useful for debuggers only, and take one fourteenth of the upload. named.wasm keeps
  # them. The features are listed because workerd need not know every encoding that wasm-opt knows.
  # Level 1: what higher levels do makes the module smaller, but the upload larger.
  features=(--enable-{mutable-globals,sign-ext,nontrapping-float-to-int,bulk-memory,multivalue,reference-types,exception-handling})
  node_modules/.bin/wasm-opt -O1 --debuginfo "${features[@]}" "$generated/index_bg.wasm" -o "$build/named.wasm"
  # Similar functions come one after the other, because an upload is compressed with a window of 32 KB. In the
  # order of their names, the upload would be larger by one thirtieth. No function changes.
  node scripts/order-functions.ts "$build/named.wasm" "$generated/ranked.wasm"
  node_modules/.bin/wasm-opt --reorder-functions-by-name --strip-debug "${features[@]}" \
    "$generated/ranked.wasm" -o "$build/index_bg.wasm"
else
  mv "$generated/index_bg.wasm" "$build/index_bg.wasm"
fi
rm -rf "$generated"
mv "$build/.building" "$stamp"
