//! Compiles the policy sources; a mistake in one of them stops the build with its place.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use gateward_policy_compiler::{SCHEMA_PATH, VELOCITY_PATH, compile, read_sources};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // A directory means everything in it, including files that are added later.
    for source in [SCHEMA_PATH, VELOCITY_PATH, "tools", "shield", "base", "tenants"] {
        println!("cargo::rerun-if-changed={source}");
    }
    let sources = match read_sources(Path::new(".")) {
        Ok(sources) => sources,
        Err(error) => {
            println!("cargo::error={error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let compiled = match compile(&sources) {
        Ok(compiled) => compiled,
        Err(mistakes) => {
            for mistake in mistakes {
                println!("cargo::error={mistake}");
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    for warning in compiled.warnings() {
        println!("cargo::warning={warning}");
    }
    let out_dir = env::var("OUT_DIR")?;
    let out = Path::new(&out_dir);
    fs::write(out.join("bundle.rs"), compiled.render())?;
    fs::write(out.join("schema.cedarschema"), compiled.schema_text())?;
    Ok(ExitCode::SUCCESS)
}
