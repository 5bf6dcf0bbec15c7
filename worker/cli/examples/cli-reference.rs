//! Prints `docs/cli.md`: `cargo run -q -p gateward --example cli-reference > docs/cli.md`.

fn main() {
    print!("{}", gateward::reference());
}
