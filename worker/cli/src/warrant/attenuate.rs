use std::path::PathBuf;

use clap::Args;
use gateward_core::warrant::chain::{Envelope, in_time, sha256};
use gateward_core::warrant::constraint::Arguments;
use gateward_core::warrant::key::PublicKey;
use gateward_core::warrant::payload::{Payload, Powers};
use gateward_core::warrant::{Refusal, text};

use super::input::{duration, links, now_s, refused, stack, tools, verified};
use super::issue::new_id;
use crate::failure::Failure;
use crate::runner::print;
use crate::secret::warrant_key;

/// Sign a narrower warrant as the holder of another one, and print the chain
///
/// What is not given stays as in the warrant before, with its approval gates and approvers. The chain is
/// verified before it is printed, so a warrant that is wider is refused here, with the rule and the link.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
Example:
  gateward warrant attenuate --key agent.key --warrant @root.warrant --ttl 2m \\
    --holder \"$(gateward warrant public --key worker.key)\" \\
    --tools '{\"refund\": {\"amount\": {\"range\": {\"max\": 20}}}}' > worker.warrant")]
pub struct Attenuate {
    /// The file with the secret key of the last link's holder
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The warrant or the chain: base64 or PEM, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "STACK")]
    warrant: String,
    /// The public key of the new holder, 64 lower-case hex digits
    #[arg(long, value_name = "HEX")]
    holder: PublicKey,
    /// Only these tools, with these constraints in the place of the ones before: JSON as for `issue`,
    /// `@FILE`, or `-` for standard input. Arguments that are not given keep their constraints, so `{}` keeps
    /// a tool as it is
    #[arg(long, value_name = "JSON")]
    tools: Option<String>,
    /// Until when it is valid, from now, as for `issue`; never longer than the warrant before
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<u64>,
    /// The greatest depth of the chain; the root has depth 0
    #[arg(long, value_name = "DEPTH")]
    max_depth: Option<u8>,
    /// The clearance, 0 to 255
    #[arg(long, value_name = "NUMBER")]
    clearance: Option<u8>,
    /// Refuse arguments that have no constraint, where the warrant before allows them
    #[arg(long)]
    no_unknown: bool,
    /// Print PEM
    #[arg(long)]
    pem: bool,
}

impl Attenuate {
    pub fn run(&self) -> Result<(), Failure> {
        let tools = self.tools.as_deref().map(tools).transpose()?;
        let key = warrant_key(&self.key)?;
        let before = stack(&self.warrant)?;
        // The rules of the child are checked against a chain that holds.
        let chain = verified(&before)?;
        let envelopes = links(&before)?;
        let now_s = now_s();
        for (at, link) in chain.links().iter().enumerate() {
            in_time(link, now_s).map_err(|code| {
                refused(Refusal::at(code, at, "it has expired, or was issued in the future"))
            })?;
        }
        let (Some(parent), Some(envelope)) = (chain.leaf(), envelopes.last()) else {
            return Err(Failure::other("there is no warrant"));
        };
        if key.public() != parent.holder {
            return Err(Failure::Other(format!(
                "{}: this is not the key of the last link's holder, {}",
                self.key.display(),
                parent.holder
            )));
        }
        let child = key.issue(&self.child(parent, envelope, tools, now_s));
        let mut warrants: Vec<_> = envelopes.iter().map(Envelope::write).collect();
        warrants.push(child);
        let stack = text::join(&warrants);
        verified(&stack)?;
        print(
            match self.pem {
                true => text::pem(&stack),
                false => text::encode(&stack),
            }
            .trim_end(),
        )
    }

    fn child(
        &self,
        parent: &Payload,
        envelope: &Envelope<'_>,
        tools: Option<Vec<(String, Arguments)>>,
        now_s: u64,
    ) -> Payload {
        let mut powers = match tools {
            None => parent.powers.clone(),
            Some(tools) => Powers::Execution(
                tools.into_iter().map(|(name, it)| kept(parent.tool(&name), name, it)).collect(),
            ),
        };
        if let Powers::Execution(tools) = &mut powers
            && self.no_unknown
        {
            tools.iter_mut().for_each(|(_, it)| it.allow_unknown = false);
        }
        // The parent's clock may be ahead.
        let issued_at_s = now_s.max(parent.issued_at_s);
        let until_s = self.ttl.map_or(u64::MAX, |ttl| issued_at_s.saturating_add(ttl));
        Payload {
            id: new_id(),
            powers,
            holder: self.holder,
            issuer: parent.holder,
            issued_at_s,
            expires_at_s: parent.expires_at_s.min(until_s),
            max_depth: self.max_depth.unwrap_or(parent.max_depth),
            depth: parent.depth.saturating_add(1),
            parent_hash: Some(sha256(envelope.payload)),
            clearance: self.clearance.or(parent.clearance),
            ..parent.clone()
        }
    }
}

/// A tool of the child: arguments that are not given have their parent's constraints.
fn kept(parent: Option<&Arguments>, name: String, mut given: Arguments) -> (String, Arguments) {
    if let Some(parent) = parent {
        for (argument, constraint) in &parent.constraints {
            if given.get(argument).is_none() {
                let at = given.constraints.partition_point(|(other, _)| other < argument);
                given.constraints.insert(at, (argument.clone(), constraint.clone()));
            }
        }
        given.allow_unknown = parent.allow_unknown;
    }
    (name, given)
}
