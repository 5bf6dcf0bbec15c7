//! `gateward-bindgen <wasm> <directory>` writes a worker's Wasm and its JavaScript, as `index_bg.wasm` and `index.js`.
//!
//! The options are those of worker-build: a function that makes a new instance after a trap, and a handler that Rust's
//! panics reach.

use std::env::args_os;
use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = args_os().skip(1);
    let (Some(wasm), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: gateward-bindgen <wasm> <directory>".into());
    };
    Bindgen::new()
        .module(true)?
        .input_path(wasm)
        .out_name("index")
        .typescript(false)
        .reset_state_function(true)
        .force_enable_abort_handler(true)
        .generate(directory)?;
    Ok(())
}
