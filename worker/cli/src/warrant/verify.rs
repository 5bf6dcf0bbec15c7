use clap::Args;
use gateward_core::id::rfc3339;
use gateward_core::warrant::bounds::{
    DEFAULT_MAX_LINKS, DEFAULT_PROOF_WINDOWS, MAX_APPROVAL_BYTES, MAX_APPROVALS, MAX_TEXT_BYTES,
};
use gateward_core::warrant::carried::HEADERS;
use gateward_core::warrant::key::PublicKey;
use gateward_core::warrant::payload::WarrantId;
use gateward_core::warrant::{Cache, Call, Carried, Claim, Judged, Tolerance};
use serde_json::{Value, json};

use super::input::{now_s, object, read, refused, time};
use crate::arguments::ToolId;
use crate::failure::Failure;
use crate::runner::print;
use crate::table::{self, Field};

/// What a worker accepts unless its tenant registers other numbers.
const TOLERANCE: Tolerance =
    Tolerance { max_links: DEFAULT_MAX_LINKS, proof_windows: DEFAULT_PROOF_WINDOWS };

/// Bytes of a proof's text: more make no signature.
const MAX_PROOF_BYTES: usize = 1024;

/// Bytes of the approvals' text, which is base64 of base64.
const MAX_APPROVALS_BYTES: usize = 2 * MAX_APPROVALS * MAX_APPROVAL_BYTES;

/// What this command cannot know.
const UNKNOWN: &str = "\
Only the worker knows whether the root is registered for this server, whether a link is revoked, which
clearance the tool needs, and whether the proof was used.";

const FIELDS: &[Field] = &[
    Field::column("root"),
    Field::column("agent_key"),
    Field::column("holder"),
    Field::column("links"),
    Field::column("clearance").null("none"),
    Field::column("expires_at"),
    Field::column("proof_ends_at"),
];

/// Verify a warrant with its proof for a call, as a worker does
///
/// Exits with 1 if the warrant does not carry the call, and says which rule fails at which link. What only
/// the worker knows is not checked: whether the root is registered for the server, revocations, the clearance
/// that the tool needs, and whether the proof was used. At most 8 links are accepted, and proofs that are
/// about a minute old: a tenant may have other settings.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
Example:
  gateward warrant verify --warrant @worker.warrant --proof @call.proof --tool pay/refund \\
    --input '{\"amount\": 20, \"customer\": \"c-7\"}' --root \"$(gateward warrant public --key root.key)\"")]
pub struct Verify {
    /// The warrant or the chain: base64 or PEM, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "STACK")]
    warrant: String,
    /// The proof in base64, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "PROOF", allow_hyphen_values = true)]
    proof: String,
    /// Approvals in base64, as in `X-Tenuo-Approvals`, or `@FILE`
    #[arg(long, value_name = "APPROVALS", allow_hyphen_values = true)]
    approvals: Option<String>,
    /// The tool that is called
    #[arg(long, value_name = "SERVER/TOOL")]
    tool: ToolId,
    /// The arguments of the call: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    input: String,
    /// The public key of the root that is trusted, 64 lower-case hex digits
    #[arg(long, value_name = "HEX")]
    root: PublicKey,
    /// When the call is made, RFC 3339 (default: now)
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,
}

impl Verify {
    pub fn run(&self, json: bool) -> Result<(), Failure> {
        let input = object("--input", &self.input)?;
        let approvals = self.approvals.as_deref().map(|it| read(it, MAX_APPROVALS_BYTES));
        // In the order of the headers.
        let texts = [
            Some(read(&self.warrant, MAX_TEXT_BYTES)?.trim().to_owned()),
            Some(read(&self.proof, MAX_PROOF_BYTES)?.trim().to_owned()),
            approvals.transpose()?.map(|it| it.trim().to_owned()),
        ];
        let carried = Carried::in_headers(|name| {
            let (_, text) = HEADERS.iter().zip(&texts).find(|(header, _)| **header == name)?;
            text.clone()
        });
        let mut carried = carried.ok_or_else(|| Failure::other("there is no warrant"))?;
        let now_s = self.at.unwrap_or_else(now_s);
        let ToolId { server, tool } = &self.tool;
        let call = Call { server, tool, input: &input, now_s, agent_key: None };
        carried.judge(&call, TOLERANCE, &mut Cache::default());
        let claim = match carried.judged {
            Judged::Holds(claim) => claim,
            Judged::Refused(refusal) => return Err(refused(refusal)),
            Judged::Later(_) => return Err(Failure::other("the call was not judged")),
        };
        if claim.root != self.root {
            return Err(Failure::Other(format!(
                "the warrant's root is another key than `--root`: {}",
                claim.root
            )));
        }
        let shown = shown(&claim);
        if json {
            return print(&shown.to_string());
        }
        let record = table::record(FIELDS, &shown);
        print(&format!("The warrant carries the call.\n\n{record}\n\n{UNKNOWN}"))
    }
}

fn shown(claim: &Claim) -> Value {
    let ids = claim.ids.iter().map(|id| WarrantId(*id).to_string());
    json!({
        "root": claim.root,
        "agent_key": claim.agent_key,
        "holder": claim.holder,
        "links": ids.collect::<Vec<_>>(),
        "clearance": claim.clearance,
        "expires_at": rfc3339(claim.expires_at_s.saturating_mul(1000)),
        "proof_ends_at":
            rfc3339(claim.proven.ends_at_s(TOLERANCE.proof_windows).saturating_mul(1000)),
    })
}
