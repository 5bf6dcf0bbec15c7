use std::path::PathBuf;

use clap::Args;
use gateward_core::warrant::payload::{Payload, Powers};
use gateward_core::warrant::text;

use super::input::{now_s, object, stack, time, verified};
use crate::failure::Failure;
use crate::runner::print;
use crate::secret::warrant_key;

/// Sign a call as the holder of a warrant, and print the proof
///
/// The proof is for this tool with exactly these arguments. A worker accepts it for a minute or two; for a
/// call that changes something, once.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
Example:
  gateward warrant prove --key worker.key --warrant @worker.warrant --tool pay/refund \\
      --input '{\"amount\": 20, \"customer\": \"c-7\"}' --headers |
    curl -H @- …")]
pub struct Prove {
    /// The file with the secret key of the last link's holder
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The warrant or the chain: base64 or PEM, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "STACK")]
    warrant: String,
    /// The tool, `server/tool` or `tool`; with its server if its own name has a `/`. The proof has the name
    /// that the warrant has
    #[arg(long, value_name = "TOOL")]
    tool: String,
    /// The arguments of the call: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    input: String,
    /// When the call is made, RFC 3339 (default: now)
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,
    /// Print the headers of the request, with the warrant
    #[arg(long)]
    headers: bool,
}

impl Prove {
    pub fn run(&self) -> Result<(), Failure> {
        let input = object("--input", &self.input)?;
        let key = warrant_key(&self.key)?;
        let stack = stack(&self.warrant)?;
        let chain = verified(&stack)?;
        let leaf = chain.leaf().ok_or_else(|| Failure::other("there is no warrant"))?;
        if key.public() != leaf.holder {
            return Err(Failure::Other(format!(
                "{}: this is not the key of the last link's holder, {}",
                self.key.display(),
                leaf.holder
            )));
        }
        let name = name(leaf, &self.tool).ok_or_else(|| {
            Failure::Other(format!("the warrant does not name the tool `{}`", self.tool))
        })?;
        let proof = key.prove(leaf.id, name, &input, self.at.unwrap_or_else(now_s));
        let proof = text::encode(&proof);
        if self.headers {
            print(&format!("X-Tenuo-Warrant: {}\nX-Tenuo-PoP: {proof}", text::encode(&stack)))
        } else {
            print(&proof)
        }
    }
}

/// The tool as the warrant names it: a name with its server first, then without, then `*`, which is without.
fn name<'a>(leaf: &Payload, tool: &'a str) -> Option<&'a str> {
    let Powers::Execution(tools) = &leaf.powers else { return None };
    let has = |name: &str| tools.iter().any(|(tool, _)| tool == name);
    let alone = tool.split_once('/').map_or(tool, |(_, tool)| tool);
    if has(tool) {
        return Some(tool);
    }
    // A tool's own name with a `/` could be the name of another server's tool. A worker refuses the call, also if there is
    // `*`.
    let is_unclear = has(alone) && alone.contains('/');
    (!is_unclear && (has(alone) || has("*"))).then_some(alone)
}

#[cfg(test)]
mod tests {
    use gateward_core::warrant::constraint::Arguments;
    use gateward_core::warrant::mint::Secret;
    use gateward_core::warrant::payload::WarrantId;

    use super::*;

    #[test]
    fn the_proof_has_the_name_that_the_warrant_has() {
        let public = Secret::new([1; 32]).public();
        let mut leaf = Payload {
            id: WarrantId([1; 16]),
            powers: Powers::Execution(Vec::new()),
            holder: public,
            issuer: public,
            issued_at_s: 1,
            expires_at_s: 2,
            max_depth: 0,
            depth: 0,
            parent_hash: None,
            extensions: Vec::new(),
            gates: None,
            approvers: Vec::new(),
            min_approvals: None,
            clearance: None,
        };
        for (tools, tool, expected) in [
            (&["refund"][..], "pay/refund", Some("refund")),
            (&["refund"], "refund", Some("refund")),
            (&["pay/refund"], "pay/refund", Some("pay/refund")),
            (&["pay/refund", "refund"], "pay/refund", Some("pay/refund")),
            (&["*"], "pay/refund", Some("refund")),
            (&["*"], "refund", Some("refund")),
            (&["pay/refund"], "refund", None),
            (&["pay/refund"], "other/refund", None),
            (&["files/resources/read"], "files/resources/read", Some("files/resources/read")),
            (&["*"], "files/resources/read", Some("resources/read")),
            (&["resources/read"], "files/resources/read", None),
            (&["*", "resources/read"], "files/resources/read", None),
        ] {
            let tools = tools.iter().map(|name| ((*name).to_owned(), Arguments::default()));
            leaf.powers = Powers::Execution(tools.collect());
            assert_eq!(name(&leaf, tool), expected, "{:?} {tool}", leaf.powers);
        }
    }
}
