//! A tenant's allow-list: destinations that are its own.

use serde::{Deserialize, Serialize};
use url::Host;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Names in each list of [`Destinations`]. Policies get them as sets with each call.
pub const MAX_DESTINATIONS: usize = 64;

/// Bytes of a name: the longest name of DNS (RFC 1035). Account numbers are shorter.
pub const MAX_DESTINATION_BYTES: usize = 253;

/// Destinations that a tenant registered as its own. They are stored in one spelling. An empty list allows
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Destinations {
    /// Account numbers, such as IBANs: letters and digits. Spaces, `-` and `.` are left out.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub accounts: Vec<String>,
    /// Domains of mail addresses. A subdomain is another domain.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub domains: Vec<String>,
    /// Hosts of URLs.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub hosts: Vec<String>,
}

impl Destinations {
    /// Each list in normal form, sorted, and each name once.
    ///
    /// # Errors
    ///
    /// `invalid_field`: a list is too long, or a name is not one.
    pub fn normal(&self) -> Result<Self, Problem> {
        Ok(Self {
            accounts: normal("destinations.accounts", &self.accounts, account)?,
            domains: normal("destinations.domains", &self.domains, domain)?,
            hosts: normal("destinations.hosts", &self.hosts, host)?,
        })
    }

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

fn normal(
    field: &str,
    names: &[String],
    normal: impl Fn(&str) -> Result<String, &'static str>,
) -> Result<Vec<String>, Problem> {
    let refuse = |must: &str| Problem::field(field, format!("`{field}`: {must}"));
    if names.len() > MAX_DESTINATIONS {
        return Err(refuse(&format!("must have at most {MAX_DESTINATIONS} entries")));
    }
    let bounded = |name: &String| match name.len() <= MAX_DESTINATION_BYTES {
        true => normal(name).map_err(refuse),
        false => Err(refuse(&format!("each must have at most {MAX_DESTINATION_BYTES} bytes"))),
    };
    let mut names = names.iter().map(bounded).collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn account(text: &str) -> Result<String, &'static str> {
    let digits: String = text.chars().filter(|c| !matches!(c, ' ' | '-' | '.')).collect();
    match !digits.is_empty() && digits.chars().all(|c| c.is_ascii_alphanumeric()) {
        true => Ok(digits.to_ascii_lowercase()),
        false => Err("each must be an account number: letters and digits"),
    }
}

fn domain(text: &str) -> Result<String, &'static str> {
    let must =
        "each must be a domain in ASCII form, such as `example.com` or `xn--…`, and not a pattern";
    match Host::parse(text.strip_suffix('.').unwrap_or(text)) {
        // It has no `*`, because it does not match subdomains.
        Ok(Host::Domain(name)) if !name.contains('*') => Ok(name),
        _ => Err(must),
    }
}

fn host(text: &str) -> Result<String, &'static str> {
    match Host::parse(text) {
        Ok(address @ (Host::Ipv4(_) | Host::Ipv6(_))) => Ok(address.to_string()),
        _ => domain(text).map_err(
            |_| "each must be a host in ASCII form, such as `example.com` or `192.0.2.1`, without port and path",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The normal form of a name in each of the lists.
    fn normal(name: &str) -> [Option<String>; 3] {
        [account, domain, host].map(|normal| normal(name).ok())
    }

    #[test]
    fn each_name_has_one_form() {
        for (name, expected) in [
            ("DE89 3704 0044 0532 0130 00", ["de89370400440532013000", "", ""]),
            ("12-34-56", ["123456", "12-34-56", "12-34-56"]),
            ("ACME.Example", ["acmeexample", "acme.example", "acme.example"]),
            ("acme.example.", ["acmeexample", "acme.example", "acme.example"]),
            (
                "XN--bcher-kva.example",
                ["xnbcherkvaexample", "xn--bcher-kva.example", "xn--bcher-kva.example"],
            ),
            ("bücher.example", ["", "", ""]),
            ("192.0.2.1", ["192021", "", "192.0.2.1"]),
            ("[2001:DB8::1]", ["", "", "[2001:db8::1]"]),
            ("*.acme.example", ["", "", ""]),
            ("https://acme.example", ["", "", ""]),
            ("acme.example:8080", ["", "", ""]),
            ("ada@acme.example", ["", "", ""]),
            ("", ["", "", ""]),
        ] {
            let expected = expected.map(|name| (!name.is_empty()).then(|| name.to_owned()));
            assert_eq!(normal(name), expected, "{name}");
        }
    }

    #[test]
    fn lists_are_sorted_without_duplicates_and_bounded() {
        let hosts = |hosts: Vec<String>| Destinations { hosts, ..Destinations::default() }.normal();
        let names = ["b.example", "A.example", "a.example"].map(str::to_owned).to_vec();
        assert_eq!(hosts(names).unwrap().hosts, ["a.example", "b.example"]);
        let many = |count: usize| (0..count).map(|n| format!("h{n}.example")).collect();
        assert!(hosts(many(MAX_DESTINATIONS)).is_ok());
        let refused = hosts(many(MAX_DESTINATIONS + 1)).unwrap_err();
        assert!(refused.detail.starts_with("`destinations.hosts`: "), "{}", refused.detail);
        assert!(hosts(vec!["x".repeat(MAX_DESTINATION_BYTES + 1)]).is_err());
    }
}
