//! Policy sources to a [`gateward_core::policy::bundle::Bundle`].
//!
//! [`compile`] makes a typed action of every described tool, parses each policy separately, checks
//! ids, annotations and bounds, validates strictly against the schema, indexes policies by their
//! scopes and computes the digest. It reports all mistakes at once, each with file, line and text.
//!
//! Out of scope: evaluating policies (`gateward_core::policy`), and reading them at run time. The
//! worker reads only what this crate wrote.

mod annotations;
pub mod bounds;
mod compiled;
mod error;
mod index;
mod json_keys;
mod policies;
mod schema;
mod shield;
mod sources;
mod split;
mod tools;
mod velocity;

use gateward_core::shield::Rules;
use sha2::{Digest as _, Sha256};

pub use crate::compiled::Compiled;
pub use crate::error::PolicyError;
pub use crate::sources::{
    ReadError, SCHEMA_PATH, SourceFile, Sources, VELOCITY_PATH, read_sources,
};

use crate::compiled::CompiledPolicy;
use crate::policies::Parsed;
use crate::tools::Tool;
use crate::velocity::Window;

/// Compiles and validates.
///
/// # Errors
///
/// Every mistake that was found, sorted by place. If the schema or a tool has a mistake, policies are
/// not validated until it is corrected.
pub fn compile(sources: &Sources) -> Result<Compiled, Vec<PolicyError>> {
    let mut errors = Vec::new();
    let tools = tools::read(&sources.tools, &mut errors);
    let windows = velocity::read(&sources.velocity, &tools, &mut errors);
    let rules = shield::read(&sources.shield, &mut errors);
    let schema = if errors.is_empty() {
        schema::combine(&sources.schema, &tools, &windows, &mut errors)
    } else {
        None
    };
    let parsed = policies::read(&sources.policies, &mut errors);
    let (warnings, schema_text) = match schema {
        Some((schema, text)) => (policies::validate(schema, &parsed, &windows, &mut errors), text),
        None => (Vec::new(), String::new()),
    };
    let compiled = assemble(sources, (tools, windows, rules), &parsed, errors)?;
    Ok(Compiled { schema: schema_text, warnings, ..compiled })
}

/// Compiles without validating: [`Sources::schema`] may be empty, and policies may name entities
/// and attributes that no schema has. For tests and benches over generated policies.
///
/// # Errors
///
/// As [`compile`], except for mistakes that only the schema shows.
pub fn compile_unvalidated(sources: &Sources) -> Result<Compiled, Vec<PolicyError>> {
    let mut errors = Vec::new();
    let tools = tools::read(&sources.tools, &mut errors);
    let windows = velocity::read(&sources.velocity, &tools, &mut errors);
    let rules = shield::read(&sources.shield, &mut errors);
    let parsed = policies::read(&sources.policies, &mut errors);
    assemble(sources, (tools, windows, rules), &parsed, errors)
}

/// The bundle, unless there were errors.
fn assemble(
    sources: &Sources,
    (tools, windows, shield): (Vec<Tool>, Vec<Window>, Rules),
    parsed: &[Parsed],
    mut errors: Vec<PolicyError>,
) -> Result<Compiled, Vec<PolicyError>> {
    if !errors.is_empty() {
        errors.sort();
        errors.dedup();
        return Err(errors);
    }
    let policies = parsed
        .iter()
        .map(|policy| CompiledPolicy {
            id: policy.id().to_owned(),
            text: policy.text().to_owned(),
            expressions: policy.expressions.clone(),
            tenant: policy.tenant.map(str::to_owned),
            forbid: policy.forbid(),
            annotations: policy.annotations.clone(),
        })
        .collect();
    Ok(Compiled {
        digest: digest(sources, parsed),
        index: index::build(parsed),
        policies,
        tools,
        windows,
        shield,
        schema: String::new(),
        warnings: Vec::new(),
    })
}

/// SHA-256 over these parts: a marker; the schema; `velocity.json`; the number of tool files, and path and text of each;
/// the number of files with rules of the shield, and path and text of each;
/// the number of policies, and id, tenant (empty for base), text and expressions of each. Each part is
/// preceded by its length in bytes. Lengths and numbers have 64 bits, big-endian.
fn digest(sources: &Sources, parsed: &[Parsed]) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    let number = |length: usize| (length as u64).to_be_bytes();
    part(b"gateward bundle 4");
    part(sources.schema.as_bytes());
    part(sources.velocity.as_bytes());
    for files in [&sources.tools, &sources.shield] {
        let mut files: Vec<&SourceFile> = files.iter().collect();
        files.sort();
        part(&number(files.len()));
        for file in files {
            part(file.path.as_bytes());
            part(file.text.as_bytes());
        }
    }
    part(&number(parsed.len()));
    for policy in parsed {
        part(policy.id().as_bytes());
        part(policy.tenant.unwrap_or_default().as_bytes());
        part(policy.text().as_bytes());
        part(&policy.expressions);
    }
    hex::encode(hash.finalize())
}
