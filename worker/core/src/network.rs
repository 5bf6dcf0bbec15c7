//! Networks: the addresses from which a credential may be used, and the banned addresses.
//!
//! A network has one spelling: its first address and the length of the prefix. IPv4-mapped IPv6 networks
//! (`::ffff:0:0/96`) are written as IPv4.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Bits before the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED_PREFIX: u8 = 96;

/// A network of IPv4 or IPv6 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

/// The text is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkError;

impl Network {
    /// The syntax in words, to follow "must be".
    pub const EXPECTED: &str = "an IPv4 or IPv6 address, or a network in CIDR notation without \
         bits beyond its prefix, such as `10.0.0.0/8`";
    /// The allowed characters as a pattern of JSON Schema. [`FromStr`] checks the syntax.
    pub const PATTERN: &str = r"^[0-9A-Fa-f.:]{2,45}(/[0-9]{1,3})?$";

    /// Whether all of `other` is in this network.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }

    /// Whether `address` is in this network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// Reads a network in CIDR notation, or an address. `None` if it is neither, or has bits beyond its prefix: `10.1.2.3/8` may
/// mean the address or the network.
///
/// The parser of `ipnet` is not used. It reads `010.0.0.0` as `10.0.0.0`; others read it as `8.0.0.0`, or refuse it.
#[must_use]
pub fn parse_cidr(text: &str) -> Option<IpNet> {
    let Some((address, prefix)) = text.split_once('/') else {
        return text.parse::<IpAddr>().ok().map(IpNet::from);
    };
    let network = IpNet::new(address.parse().ok()?, prefix.parse().ok()?).ok()?;
    // The parser of numbers reads `+8` and `08`, too.
    let is_clear = !prefix.starts_with(['+', '0']) || prefix == "0";
    (is_clear && network.addr() == network.network()).then_some(network)
}

impl PartialSchema for Network {
    fn schema() -> RefOr<Schema> {
        Object::builder().schema_type(Type::String).pattern(Some(Self::PATTERN)).into()
    }
}

impl ToSchema for Network {}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let network = parse_cidr(text).ok_or(NetworkError)?;
        let IpNet::V6(v6) = network else { return Ok(Self(network)) };
        let mapped = v6.addr().to_ipv4_mapped().filter(|_| v6.prefix_len() >= MAPPED_PREFIX);
        let Some(address) = mapped else { return Ok(Self(network)) };
        let prefix = v6.prefix_len() - MAPPED_PREFIX;
        Ipv4Net::new(address, prefix).map(|v4| Self(IpNet::V4(v4))).map_err(|_| NetworkError)
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it must be {}", Network::EXPECTED)
    }
}

impl std::error::Error for NetworkError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_one_spelling() {
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:10.1.2.3", "10.1.2.3/32"),
        ] {
            let network: Network = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(network).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "10.1.2.3/8",
            "2001:db8::1/32",
            "::/129",
            "localhost",
            "10.0.0.0/",
            "/8",
            " 10.0.0.1",
            "010.0.0.1",
            "010.0.0.0/8",
            "1:2:3:4:5:6:7::8/128",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/255.0.0.0",
            "10.0.0.0/8/8",
            "fe80::1%eth0",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
    }

    #[test]
    fn an_address_is_in_a_network_in_every_spelling() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("::ffff:10.0.0.0/104", "10.0.0.1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "10.0.0.1", false),
            ("0.0.0.0/0", "::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(parsed.contains(address.parse().unwrap()), expected, "{network} {address}");
        }
    }
}
