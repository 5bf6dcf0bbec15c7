//! Writes the API's description: `cargo run -p gateward-admin --example openapi > docs/openapi.json`.

use gateward_admin::api::openapi::document;

fn main() -> Result<(), serde_json::Error> {
    println!("{}", document().to_pretty_json()?);
    Ok(())
}
