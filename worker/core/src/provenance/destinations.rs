//! A tenant's allow-list: destinations that are its own.

use serde::{Deserialize, Serialize};

/// Names in each list of [`Destinations`]. Policies get them as sets with each call.
pub const MAX_DESTINATIONS: usize = 64;

/// Destinations that a tenant registered as its own, in normal form ([`super::normal`]). An empty list allows
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destinations {
    /// Account numbers, as IBANs.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// Domains of mail addresses. A subdomain is another domain.
    #[serde(default)]
    pub domains: Vec<String>,
    /// Hosts of URLs.
    #[serde(default)]
    pub hosts: Vec<String>,
}

impl Destinations {
    /// Whether the address `local@domain` is at one of the domains.
    #[must_use]
    pub fn has_address(&self, address: &str) -> bool {
        address.rsplit_once('@').is_some_and(|(_, domain)| has(&self.domains, domain))
    }

    /// Whether the host of a URL is listed.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        has(&self.hosts, host)
    }

    /// Whether the account number, in normal form, is listed.
    #[must_use]
    pub fn has_account(&self, account: &str) -> bool {
        has(&self.accounts, account)
    }
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|listed| listed == name)
}
