#!/usr/bin/env bash
# Installs Rust, its Wasm target and the Wasm build tools, if they are missing. Otherwise prints nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

say() { echo "gateward: $*" >&2; }

if ! command -v rustup >/dev/null; then
  say "Rust is missing: install rustup (https://rustup.rs), then try again"
  exit 1
fi
if [ -z "$wasm_bindgen_version" ]; then
  say "\`Cargo.lock\` has no \`wasm-bindgen\`: restore the file with git"
  exit 1
fi

sysroot="$(rustup run "$rust_channel" rustc --print sysroot 2>/dev/null || true)"
if [ -z "$sysroot" ] || [ ! -d "$sysroot/lib/rustlib/$wasm_target/lib" ] \
  || [ ! -x "$sysroot/bin/cargo-clippy" ] || [ ! -x "$sysroot/bin/rustfmt" ]; then
  say "installing Rust $rust_channel with clippy, rustfmt and $wasm_target (about 1 minute)"
  rustup toolchain install "$rust_channel" --profile minimal --no-self-update \
    --component clippy --component rustfmt --target "$wasm_target"
fi

# Debug builds: the tools run for seconds only, and an optimised build would take minutes longer.
# Without --locked, because this version's published lockfile contains a yanked release.
if [ ! -x "$wasm_bindgen_root/bin/wasm-bindgen" ]; then
  say "installing wasm-bindgen-cli $wasm_bindgen_version (about 2.5 minutes on 2 cores)"
  cargo install wasm-bindgen-cli --version "$wasm_bindgen_version" --debug \
    --root "$wasm_bindgen_root"
fi
