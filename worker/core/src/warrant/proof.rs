//! Proofs of possession: the holder signs the tool, the arguments and the time.
//!
//! A proof has no nonce. It names a window of 30 s, and is the same for the same call in that window.

use serde::{Deserialize, Serialize};

use super::bounds::PROOF_WINDOW_S;
use super::cbor::{Writer, sorted};
use super::chain::{CONTEXT, sha256};
use super::constraint::{TooMuch, Work};
use super::key::{PublicKey, SIGNATURE_BYTES};
use super::payload::WarrantId;
use crate::json::Json;

const PROOF_CONTEXT: &[u8] = b"tenuo-pop-v1";

/// A proof that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proven {
    /// SHA-256 of what was signed. The holder can make several signatures of the same text, so a signature is no
    /// identity.
    pub hash: [u8; 32],
    /// When its window begins, in seconds since 1970.
    pub window_s: u64,
}

impl Proven {
    /// Whether a verifier whose clock says `now_s` accepts the window, with this number of windows.
    #[must_use]
    pub fn is_accepted(&self, now_s: u64, windows: u32) -> bool {
        accepted(now_s, windows).any(|window_s| window_s == self.window_s)
    }

    /// When no verifier accepts it any more, in seconds since 1970.
    #[must_use]
    pub fn ends_at_s(&self, windows: u32) -> u64 {
        // Half of the windows, rounded down, are in the past.
        self.window_s.saturating_add((u64::from(windows / 2) + 1) * PROOF_WINDOW_S)
    }

    /// When the next window begins: then the holder can make another proof for the same call.
    #[must_use]
    pub fn next_at_s(&self) -> u64 {
        self.window_s.saturating_add(PROOF_WINDOW_S)
    }
}

/// What a holder signs, but for the time. The arguments of a call are written once: what an approver signs has the same.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    id: WarrantId,
    tool: &'a str,
    bytes: Vec<u8>,
    /// Where each argument begins in the bytes.
    arguments: Vec<usize>,
}

impl<'a> Statement<'a> {
    /// `input` is an object.
    #[must_use]
    pub fn new(id: WarrantId, tool: &'a str, input: &Json) -> Self {
        let mut writer = Writer { bytes: [CONTEXT, PROOF_CONTEXT].concat() };
        writer.array(4);
        writer.text(&hex::encode(id.0));
        writer.text(tool);
        let fields = match input {
            Json::Object(fields) => sorted(fields),
            _ => Vec::new(),
        };
        writer.array(fields.len());
        let mut arguments = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            arguments.push(writer.bytes.len());
            writer.array(2);
            writer.text(name);
            writer.value(value);
        }
        Self { id, tool, bytes: writer.bytes, arguments }
    }

    /// The hash that an approval of the call names.
    #[must_use]
    pub fn request_hash(&self, holder: &PublicKey) -> [u8; 32] {
        let mut map = Writer::default();
        map.map(self.arguments.len());
        let ends = self.arguments.iter().skip(1).copied().chain([self.bytes.len()]);
        for (from, end) in self.arguments.iter().zip(ends) {
            // Without the first byte, which says that name and value are an array of two.
            map.bytes.extend_from_slice(self.bytes.get(from + 1..end).unwrap_or_default());
        }
        let mut writer = Writer::default();
        writer.array(4);
        writer.text(&[WarrantId::PREFIX, &hex::encode(self.id.0)].concat());
        writer.text(self.tool);
        writer.bytes(&map.bytes);
        writer.bytes(&holder.0);
        sha256(&writer.bytes)
    }

    /// What a holder signs at this time.
    #[must_use]
    pub fn at(&self, now_s: u64) -> Vec<u8> {
        let mut writer = Writer { bytes: self.bytes.clone() };
        writer.unsigned(now_s - now_s % PROOF_WINDOW_S);
        writer.bytes
    }

    /// Verifies a proof in each accepted window. It takes the steps of all windows, so that the verdict does not depend on
    /// which one the proof is for.
    ///
    /// # Errors
    ///
    /// It takes too much work.
    pub fn verify(
        &self,
        holder: &PublicKey,
        proof: &[u8; SIGNATURE_BYTES],
        (now_s, windows): (u64, u32),
        work: &mut Work,
    ) -> Result<Option<Proven>, TooMuch> {
        work.spend_signatures(windows as usize, self.bytes.len())?;
        // One hash names the proof, and one the call for its approvers.
        work.spend_hash(2 * self.bytes.len())?;
        let Some(holder) = holder.prepared() else { return Ok(None) };
        Ok(accepted(now_s, windows).find_map(|window_s| {
            let statement = self.at(window_s);
            holder.verify(&statement, proof).then(|| Proven { hash: sha256(&statement), window_s })
        }))
    }
}

/// The accepted windows, the likeliest first: the current one, then alternately one before and one after.
fn accepted(now_s: u64, windows: u32) -> impl Iterator<Item = u64> {
    let current = now_s - now_s % PROOF_WINDOW_S;
    (0..windows).filter_map(move |at| {
        let distance = u64::from(at.div_ceil(2)) * PROOF_WINDOW_S;
        match at % 2 {
            1 => current.checked_sub(distance),
            _ => current.checked_add(distance),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_accepted_for_as_long_as_the_windows_reach() {
        for (windows, first, last) in [(1, 0, 29), (2, 0, 59), (3, -30, 59), (5, -60, 89)] {
            let proven = Proven { hash: [0; 32], window_s: 3_000 };
            let at =
                |offset: i64| proven.is_accepted(3_000_u64.saturating_add_signed(offset), windows);
            assert!(at(first) && at(last), "{windows}");
            assert!(!at(first - 1) && !at(last + 1), "{windows}");
            assert_eq!(proven.ends_at_s(windows), 3_000_u64.saturating_add_signed(last + 1));
        }
        assert_eq!(accepted(0, 5).collect::<Vec<_>>(), [0, 30, 60]);
    }
}
