#!/usr/bin/env bash
# Installs Rust and its Wasm target, if they are missing. Otherwise prints nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/tools.sh

say() { echo "gateward: $*" >&2; }

if ! command -v rustup >/dev/null; then
  say "Rust is missing: install rustup (https://rustup.rs), then try again"
  exit 1
fi

sysroot="$(rustup run "$rust_channel" rustc --print sysroot 2>/dev/null || true)"
if [ -z "$sysroot" ] || [ ! -d "$sysroot/lib/rustlib/$wasm_target/lib" ] \
  || [ ! -x "$sysroot/bin/cargo-clippy" ] || [ ! -x "$sysroot/bin/rustfmt" ]; then
  say "installing Rust $rust_channel with clippy, rustfmt and $wasm_target (about 1 minute)"
  rustup toolchain install "$rust_channel" --profile minimal --no-self-update \
    --component clippy --component rustfmt --target "$wasm_target"
fi
