# Which build tools the project uses and where it keeps them; sourced by the other scripts from
# the repository's root.

tool_cache="${XDG_CACHE_HOME:-$HOME/.cache}/gateward"
rust_channel="$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)"
wasm_target="wasm32-unknown-unknown"
worker_build_version="0.8.7"
# The command line tool and the crate must be the same version, so the lockfile says which.
wasm_bindgen_version="$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"/\1/p;}' Cargo.lock)"

worker_build_root="$tool_cache/worker-build-$worker_build_version"
wasm_bindgen_root="$tool_cache/wasm-bindgen-cli-$wasm_bindgen_version"
