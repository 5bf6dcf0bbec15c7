# The versions of the build tools, and where they are installed. The other scripts source this file
# from the repository's root.

tool_cache="${XDG_CACHE_HOME:-$HOME/.cache}/gateward"
rust_channel="$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)"
wasm_target="wasm32-unknown-unknown"
worker_build_version="0.8.7"
# The command line tool must have the same version as the crate in the lockfile.
wasm_bindgen_version="$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"/\1/p;}' Cargo.lock)"

worker_build_root="$tool_cache/worker-build-$worker_build_version"
wasm_bindgen_root="$tool_cache/wasm-bindgen-cli-$wasm_bindgen_version"
