use std::path::PathBuf;

use clap::Args;
use gateward_core::warrant::bounds::DEFAULT_MAX_LINKS;
use gateward_core::warrant::key::PublicKey;
use gateward_core::warrant::payload::{Payload, Powers, WarrantId};
use gateward_core::warrant::text;
use uuid::Uuid;

use super::input::{duration, now_s, tools, verified};
use crate::failure::Failure;
use crate::runner::print;
use crate::secret::warrant_key;

/// As many as a worker accepts by default.
const MAX_DEPTH: u8 = DEFAULT_MAX_LINKS as u8 - 1;

/// Sign a warrant with a root key, and print it
///
/// Tools are named as `tool` or `server/tool`; `*` is every other tool. A tool whose own name has a `/` is
/// named with its server: `files/resources/read`, because `resources/read` is the tool `read` of a server
/// `resources`. Their constraints are JSON: an object of tools, each an object of arguments, each an object
/// with one member, which is the constraint's name with its body. A tool with constraints refuses other
/// arguments, and each argument that has a constraint must be present. A tool without constraints, `{}`,
/// allows every argument.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
Constraints:
  {\"wildcard\": null}                       any value
  {\"exact\": VALUE}                         this value
  {\"one_of\": [VALUE, …]}                   one of these
  {\"not_one_of\": [VALUE, …]}               none of these
  {\"range\": {\"min\": 1, \"max\": 50}}         a number; each bound is optional, and inclusive unless
                                           \"min_inclusive\" or \"max_inclusive\" is false
  {\"pattern\": \"a*\"}                        a text; `*` matches any characters, also `/../`, and
                                           `?` one. For paths use \"subpath\" or \"url_pattern\"
  {\"subpath\": {\"root\": \"/data\"}}           a path below the folder; \"case_sensitive\" and \"allow_equal\"
                                           are true by default
  {\"cidr\": \"10.0.0.0/8\"}                   an IP address in the network
  {\"url_pattern\": \"https://*.a.example/*\"} a URL
  {\"url_safe\": {}}                         a URL of a public host; members: \"schemes\", \"allow_domains\",
                                           \"deny_domains\", \"allow_ports\", \"block_internal_tlds\"
  {\"contains\": [VALUE, …]}                 a list that has all of these
  {\"subset\": [VALUE, …]}                   a list that has only these
  {\"all\": [CONSTRAINT, …]}                 all of these
  {\"any\": [CONSTRAINT, …]}                 one of these
  {\"not\": CONSTRAINT}                      the opposite

Example:
  gateward warrant issue --key root.key --holder \"$(gateward warrant public --key agent.key)\" \\
    --tools '{\"refund\": {\"amount\": {\"range\": {\"max\": 50}}, \"customer\": {\"exact\": \"c-7\"}}}'")]
pub struct Issue {
    /// The file with the root's secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The public key of the holder, 64 lower-case hex digits
    #[arg(long, value_name = "HEX")]
    holder: PublicKey,
    /// The tools and the constraints on their arguments: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    tools: String,
    /// Until when it is valid, from now: a number with `s`, `m`, `h` or `d` (at most 90d)
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    ttl: u64,
    /// How many links may follow
    #[arg(long, value_name = "LINKS", default_value_t = MAX_DEPTH)]
    max_depth: u8,
    /// The clearance, 0 to 255 (default: none)
    #[arg(long, value_name = "NUMBER")]
    clearance: Option<u8>,
    /// Allow arguments that have no constraint
    #[arg(long)]
    allow_unknown: bool,
}

impl Issue {
    pub fn run(&self) -> Result<(), Failure> {
        let mut tools = tools(&self.tools)?;
        tools.iter_mut().for_each(|(_, it)| it.allow_unknown = self.allow_unknown);
        let key = warrant_key(&self.key)?;
        let issued_at_s = now_s();
        let warrant = key.issue(&Payload {
            id: new_id(),
            powers: Powers::Execution(tools),
            holder: self.holder,
            issuer: key.public(),
            issued_at_s,
            expires_at_s: issued_at_s.saturating_add(self.ttl),
            max_depth: self.max_depth,
            depth: 0,
            parent_hash: None,
            extensions: Vec::new(),
            gates: None,
            approvers: Vec::new(),
            min_approvals: None,
            clearance: self.clearance,
        });
        verified(&warrant)?;
        print(&text::encode(&warrant))
    }
}

/// An id that no other warrant has.
pub fn new_id() -> WarrantId {
    WarrantId(Uuid::new_v4().into_bytes())
}
