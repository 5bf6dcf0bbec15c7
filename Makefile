# `make help` lists the targets. Each calls a script; the scripts install what they need.

.PHONY: help start test test-rust test-worker fuzz shield-report conformance interop containment demo demo-invoice demo-limits demo-warrant check bench bench-full bench-check wasm-report deploy clean setup toolchain wasm cli nginx prometheus lint lint-wasm types dry-run bench-build

# The build of the worker that is checked and tested. wasm-test builds faster. CI sets release, which it needs anyway.
GATEWARD_PROFILE ?= wasm-test

# These crates compile only for Wasm.
wasm_crates := gateward-edge gateward-bench-wasm
# scripts/build-wasm.sh builds gateward-bindgen apart from the rest.
native := --workspace $(addprefix --exclude ,$(wasm_crates) gateward-bindgen)

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1 \2/p' Makefile | awk '{ n = $$1; sub(/^[^ ]* /, ""); printf "  %-12s %s\n", n, $$0 }'

start: setup ## run Gateward with a demo tenant on http://127.0.0.1:8787
	@npm run --silent start

test: test-rust test-worker ## cargo tests, then vitest against the built worker in workerd

test-rust: setup
	cargo test $(native) --no-fail-fast

test-worker: wasm cli nginx prometheus
	@clients="$$(scripts/clients.sh)" && env $$clients npm run --silent test

fuzz: setup ## random chains of warrants beside the reference implementation, and random texts for the shield, some ten minutes each
	GATEWARD_FUZZ_CASES=1300000 cargo test --package gateward-core --test all warrants::
	GATEWARD_FUZZ_CASES=250000 cargo test --package gateward-core --test all shield::

shield-report: setup ## fetch public corpora and print what the shield finds in them, and in the project's own
	@npm run --silent shield-corpora
	@cargo run --quiet --package gateward-core --example shield-report -- target/shield-corpora

conformance: wasm ## run the MCP conformance suite through Gateward, for both of its revisions
	@GATEWARD_PREBUILT=1 WRANGLER_SEND_METRICS=false WRANGLER_LOG=error npm run --silent conformance

interop: wasm ## drive every pinned MCP client through Gateward and write the table in docs/mcp.md
	@clients="$$(scripts/clients.sh --all)" && env $$clients WRANGLER_SEND_METRICS=false WRANGLER_LOG=error npm run --silent interop

containment: wasm ## replay recorded tasks and attacks through Gateward and write the table in docs/provenance.md
	@GATEWARD_PREBUILT=1 WRANGLER_SEND_METRICS=false WRANGLER_LOG=error npm run --silent containment -- --write

demo: setup ## play a confused-deputy attack and verify its receipts
	@npm run --silent demo

demo-invoice: setup ## let an agent pay a poisoned invoice, and show what its approver reads
	@npm run --silent demo-invoice

demo-limits: setup ## let an agent spend a daily amount, and kill the runtime meanwhile
	@npm run --silent demo-limits

demo-warrant: setup ## let an orchestrator hand sub-agents small refunds, and an injected text ask for more
	@npm run --silent demo-warrant

check: lint lint-wasm types dry-run ## formatting, lints, types, and a dry run of the deploy

lint: toolchain
	cargo fmt --all --check
	cargo clippy $(native) --all-targets -- -D warnings

lint-wasm: wasm
	cargo clippy --profile $(GATEWARD_PROFILE) $(addprefix --package ,$(wasm_crates)) --target wasm32-unknown-unknown -- -D warnings

types: setup
	npm run --silent types

dry-run: wasm
	GATEWARD_PREBUILT=1 npm run --silent dry-run

bench: setup ## measure what the targets name, and fail if one is missed
	@npm run --silent bench

bench-full: setup ## measure everything and write docs/performance.md
	@npm run --silent bench -- --full

# What bench-check counts the instructions of.
bench-build: setup
	cargo build --release --package gateward-bench --bin instructions

bench-check: setup ## compare instruction counts and the Wasm's size with bench/thresholds.json
	@npm run --silent bench-check

wasm-report: setup ## write what the deployed Wasm contains into docs/performance.md
	@GATEWARD_PROFILE=release npm run --silent build
	@npm run --silent wasm-report

deploy: check test ## deploy to Cloudflare; without an account, a dry run that exits with an error
	npm run --silent deploy

clean: ## remove build results and the local database; keep the installed tools
	cargo clean
	rm -rf worker/edge/build bench/wasm/build node_modules .wrangler .gateward

setup:
	@scripts/setup.sh

# What needs no npm package does not wait for them.
toolchain:
	@scripts/toolchain.sh

wasm: setup
	@GATEWARD_PROFILE=$(GATEWARD_PROFILE) npm run --silent build

# `start` and the demos build it themselves.
# With all tests, because Cargo would compile what it depends on once more for it alone.
cli: setup
	cargo test $(native) --no-run

nginx: setup
	@scripts/nginx.sh > /dev/null

prometheus: setup
	@scripts/prometheus.sh > /dev/null
