//! Bans, and whether one of them applies to a call.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::Deserialize;

use crate::bounds::MAX_BANS;
use crate::network::Network;
use crate::text_enum::text_enum;

text_enum! {
    /// What is banned.
    BanKind {
        /// An agent, by name.
        Agent = "agent",
        /// A user that callers name as `user.id`.
        User = "user",
        /// A run that callers name as `trace.run_id`.
        Run = "run",
        /// The network that a request connects from.
        SourceAddress = "source_address",
    }
}

/// One ban, as it is read.
#[derive(Debug, Clone, Deserialize)]
struct Ban {
    kind: BanKind,
    subject: String,
    expires_at_ms: Option<u64>,
}

/// A tenant's bans by subject. The values are the times of expiry.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "Vec<Ban>")]
pub struct Bans {
    agents: HashMap<String, u64>,
    users: HashMap<String, u64>,
    runs: HashMap<String, u64>,
    networks: Vec<(Network, u64)>,
}

impl Bans {
    /// The first ban that applies to a call at `now_ms`.
    #[must_use]
    pub fn find(
        &self,
        (agent, user, run): (&str, &str, &str),
        address: Option<IpAddr>,
        now_ms: u64,
    ) -> Option<BanKind> {
        let holds = |expires_at_ms: &u64| now_ms < *expires_at_ms;
        for (kind, banned, name) in [
            (BanKind::Agent, &self.agents, agent),
            (BanKind::User, &self.users, user),
            (BanKind::Run, &self.runs, run),
        ] {
            if banned.get(name).is_some_and(holds) {
                return Some(kind);
            }
        }
        let live = || self.networks.iter().filter(|(_, at)| holds(at));
        // A call without an address may come from any of them.
        let Some(address) = address else { return live().next().map(|_| BanKind::SourceAddress) };
        live().any(|(net, _)| net.contains(address)).then_some(BanKind::SourceAddress)
    }
}

impl TryFrom<Vec<Ban>> for Bans {
    type Error = String;

    fn try_from(bans: Vec<Ban>) -> Result<Self, String> {
        if bans.len() > MAX_BANS {
            return Err(format!("the tenant has more than {MAX_BANS} bans"));
        }
        let mut read = Self::default();
        for Ban { kind, subject, expires_at_ms } in bans {
            let expires_at_ms = expires_at_ms.unwrap_or(u64::MAX);
            let names = match kind {
                BanKind::Agent => &mut read.agents,
                BanKind::User => &mut read.users,
                BanKind::Run => &mut read.runs,
                BanKind::SourceAddress => {
                    let network = subject.parse::<Network>();
                    let network = network.map_err(|error| format!("a ban: {error}"))?;
                    read.networks.push((network, expires_at_ms));
                    continue;
                }
            };
            // If a subject has several bans, the longest one holds.
            let held = names.entry(subject).or_default();
            *held = (*held).max(expires_at_ms);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_hold_until_they_expire_and_what_cannot_be_read_is_no_list() {
        let bans: Bans = serde_json::from_str(
            r#"[{"kind":"agent","subject":"bot","expires_at_ms":50},
            {"kind":"agent","subject":"bot","expires_at_ms":20},
            {"kind":"user","subject":"u","expires_at_ms":null},
            {"kind":"run","subject":"r","expires_at_ms":10},
            {"kind":"source_address","subject":"192.0.2.0/24","expires_at_ms":null},
            {"kind":"source_address","subject":"2001:db8::/32","expires_at_ms":10}]"#,
        )
        .unwrap();
        for (who, address, now_ms, expected) in [
            (("bot", "", ""), "::1", 49, Some(BanKind::Agent)),
            (("bot", "", ""), "::1", 50, None),
            (("u", "bot", "u"), "::1", 0, None),
            (("a", "u", "r"), "::1", 0, Some(BanKind::User)),
            (("a", "", "r"), "::1", 9, Some(BanKind::Run)),
            (("a", "", "r"), "::1", 10, None),
            (("a", "", ""), "192.0.2.9", u64::MAX - 1, Some(BanKind::SourceAddress)),
            (("a", "", ""), "192.0.3.9", 0, None),
            (("a", "", ""), "2001:db8::9", 9, Some(BanKind::SourceAddress)),
            (("a", "", ""), "2001:db8::9", 10, None),
        ] {
            let address = Some(address.parse().unwrap());
            assert_eq!(bans.find(who, address, now_ms), expected, "{who:?} {now_ms}");
        }
        let unplaced = |now_ms| bans.find(("a", "", ""), None, now_ms);
        assert_eq!(unplaced(0), Some(BanKind::SourceAddress), "it may be in any banned network");
        let none: Bans = serde_json::from_str("[]").unwrap();
        assert_eq!(none.find(("a", "", ""), None, 0), None);
        for wrong in [
            r#"[{"kind":"source_address","subject":"x","expires_at_ms":null}]"#.to_owned(),
            r#"[{"kind":"planet","subject":"x","expires_at_ms":null}]"#.to_owned(),
            format!("[{}]", [r#"{"kind":"user","subject":"u"}"#; MAX_BANS + 1].join(",")),
        ] {
            assert!(serde_json::from_str::<Bans>(&wrong).is_err());
        }
    }
}
