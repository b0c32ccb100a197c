//! Addresses that are not those of public servers: this machine, its network, and services of cloud machines.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::limits::RemoteLimits;
use crate::error::{Error, Result, shown_location};

/// The address at which Azure serves keys to its machines. All other clouds use private addresses.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Blocks of addresses with their lengths in bits, for special purposes: RFC 6890 and its successors.
const BLOCKS: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Whether an address is that of a public server: neither of this machine, nor of a private network, nor for a special
/// purpose. An address that holds another one is as public as that.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether two URLs have the same scheme, host and port.
pub fn is_same_origin(one: &Url, other: &Url) -> bool {
    let origin = |url: &Url| {
        (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default())
    };
    origin(one) == origin(other)
}

/// Refuses a URL with a private address that another server refers to, unless `limits` allow it. `by` is the URL of what
/// refers to it; files of this machine may refer to anything.
///
/// # Errors
/// `Usage`; the message names the address and the limit.
pub fn check_reference(url: &Url, by: Option<&Url>, limits: &RemoteLimits) -> Result<()> {
    let is_other = by.is_some_and(|by| !is_same_origin(by, url));
    if !is_other || !is_private_host(url) || limits.private_references {
        return Ok(());
    }
    let shown = shown_location(url.as_str());
    Err(Error::usage(format!(
        "it refers to {shown}, which is a private address; remote files may do that with `RemoteLimits::private_references`"
    )))
}

/// Whether a URL names this machine, or an address that is not public. Other names tell nothing before they are resolved.
pub fn is_private_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public_v4(address),
        Some(Host::Ipv6(address)) => !is_public_v6(address),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            // Only schemes of the web have addresses as hosts in a form of their own.
            let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
            name == "localhost"
                || name.ends_with(".localhost")
                || address.is_ok_and(|address| !is_public(address))
        }
        None => false,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(block, len): &([u8; 4], u32)| {
        (address.to_bits() ^ u32::from_be_bytes(*block)).leading_zeros() >= *len
    };
    address != AZURE && !BLOCKS.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let held = |high: u16, low: u16| {
        is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
    };
    match parts {
        // As IPv4, also in the form that is out of use. This machine and the unspecified address are among them.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => held(high, low) && parts[5] == 0xffff,
        // Translated to IPv4, or through a tunnel.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => held(high, low),
        // Tunnels with hidden addresses, ORCHID, documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All public addresses begin with these three bits. Private and local ones do not, nor do those of groups.
        [first, ..] => first >> 13 == 0b001,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in ["8.8.8.8", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "127.8.9.1",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn hosts_are_read_as_clients_read_them() {
        let is_private = |url: &str| is_private_host(&Url::parse(url).unwrap());
        for url in [
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:a00:1]/",
            "mine://10.0.0.1/",
        ] {
            assert!(is_private(url), "{url}");
        }
        assert!(!is_private("https://example.org/") && !is_private("s3://bucket/"));
    }
}
