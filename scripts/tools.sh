# The versions of the build tools, and where they are installed. The other scripts source this file
# from the repository's root.

tool_cache="${XDG_CACHE_HOME:-$HOME/.cache}/gateward"
rust_channel="$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)"
wasm_target="wasm32-unknown-unknown"

hash_of() { sha256sum "$1" | cut -c1-16; }

# Prints the path of the packages in this directory's lockfile. Installs them if they are missing.
npm_packages() { # directory
  local packages
  packages="$tool_cache/packages-$(hash_of "$1/package-lock.json")"
  if [ ! -d "$packages" ]; then
    echo "gateward: installing $1" >&2
    rm -rf "$packages.new"
    mkdir -p "$packages.new"
    cp "$1"/package*.json "$packages.new"
    npm ci --prefix "$packages.new" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    mv "$packages.new" "$packages"
  fi
  echo "$packages"
}

# Prints the program that generates TypeScript from an OpenAPI document. It needs an older compiler than
# the tests, so its packages are apart.
openapi_generator() {
  echo "$(npm_packages tests/clients/openapi)/node_modules/@hey-api/openapi-ts/bin/run.js"
}
