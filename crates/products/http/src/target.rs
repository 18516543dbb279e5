//! The URL under test.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use linerate_model::printable::printable_start;

/// An `http` or `https` URL (RFC 9110, section 4.2) without user and fragment. Its port may be a
/// range, `8080-8083`: several ports of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The scheme is `https`.
    pub is_tls: bool,
    /// Name or address; of IPv6 without brackets.
    pub host: String,
    /// Ports, one in general.
    pub ports: RangeInclusive<u16>,
    /// Path and query, at least `/`.
    pub path: String,
}

/// Why a URL is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{url}' is no URL to test: {reason}; write http://HOST[:PORT[-PORT]][/PATH]")]
pub struct TargetError {
    url: String,
    reason: &'static str,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        parse(url).map_err(|reason| TargetError {
            url: printable_start(url, SHOWN_MAX),
            reason,
        })
    }
}

fn parse(url: &str) -> Result<Target, &'static str> {
    let (scheme, rest) = url.split_once("://").ok_or("it has no scheme")?;
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => return Err("its scheme is neither http nor https"),
    };

    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err("it names a user, which is not supported");
    }
    if path.contains('#') {
        return Err("a fragment (#) is never sent");
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("its path has characters that must be written as %XX");
    }

    let (authority, zone) = split_zone(authority)?;
    let (host, ports) = split_authority(&authority)?;
    let host = zone.map_or_else(|| host.to_owned(), |zone| format!("{host}%{zone}"));

    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(Target {
        is_tls,
        host,
        ports: parse_ports(ports, is_tls)?,
        path,
    })
}

/// The authority without the device of a link-local address, and the device: `[fe80::1%25eth0]`
/// (RFC 6874), or with a plain `%` as other programs write it.
fn split_zone(authority: &str) -> Result<(String, Option<&str>), &'static str> {
    let Some((address, rest)) = authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once('%'))
    else {
        return Ok((authority.to_owned(), None));
    };
    let (zone, ports) = rest.split_once(']').ok_or("a bracket is not closed")?;
    // The device of a plain `%25` is named `25`.
    let zone = zone
        .strip_prefix("25")
        .filter(|zone| !zone.is_empty())
        .unwrap_or(zone);
    let is_device = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if zone.is_empty() || zone.len() > ZONE_MAX || !zone.bytes().all(is_device) {
        return Err("the text behind % is no device");
    }

    Ok((format!("[{address}]{ports}"), Some(zone)))
}

/// Host, without brackets, and text of the port, possibly empty.
pub(crate) fn split_authority(authority: &str) -> Result<(&str, &str), &'static str> {
    // A colon is part of an IPv6 address, so brackets separate it from the port (RFC 3986, section
    // 3.2.2).
    let (host, ports) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, ports) = rest.split_once(']').ok_or("a bracket is not closed")?;
            host.parse::<std::net::Ipv6Addr>()
                .map_err(|_| "the text in brackets is no IPv6 address")?;
            (host, ports)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            authority.split_at(end)
        }
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || host.len() > HOST_MAX || !host.bytes().all(is_name) {
        return Err("its host is no name and no address");
    }

    match ports.strip_prefix(':') {
        Some(ports) => Ok((host, ports)),
        None if ports.is_empty() => Ok((host, "")),
        None => Err("there is text between host and port"),
    }
}

fn parse_ports(text: &str, is_tls: bool) -> Result<RangeInclusive<u16>, &'static str> {
    if text.is_empty() {
        let port = if is_tls { 443 } else { 80 };
        return Ok(port..=port);
    }

    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    match (port(low), port(high)) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err("its port is no number from 1 to 65535, or no range of them"),
    }
}

impl Target {
    /// Value of the `Host` field.
    pub fn authority(&self) -> String {
        // A device is known to this host alone (RFC 6874, section 4).
        let host = self.host.split('%').next().unwrap_or_default();
        let host = match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => host.to_owned(),
        };
        let port = *self.ports.start();
        let is_default = port == if self.is_tls { 443 } else { 80 };
        if is_default {
            host
        } else {
            format!("{host}:{port}")
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())?;

        if self.ports.end() > self.ports.start() {
            write!(f, "-{}", self.ports.end())?;
        }
        f.write_str(&self.path)
    }
}

const HOST_MAX: usize = 255;
/// `IFNAMSIZ` without the final NUL.
const ZONE_MAX: usize = 15;
const SHOWN_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        for (url, is_tls, host, ports, path) in [
            ("http://10.0.0.2", false, "10.0.0.2", 80..=80, "/"),
            (
                "http://[fe80::1%25eth0]:8080/",
                false,
                "fe80::1%eth0",
                8080..=8080,
                "/",
            ),
            (
                "http://[fe80::1%eth0.7]/",
                false,
                "fe80::1%eth0.7",
                80..=80,
                "/",
            ),
            (
                "http://host:8080/b/1k?close=1",
                false,
                "host",
                8080..=8080,
                "/b/1k?close=1",
            ),
            ("HTTPS://host?x", true, "host", 443..=443, "/?x"),
            (
                "http://[fe80::1]:8080-8083/",
                false,
                "fe80::1",
                8080..=8083,
                "/",
            ),
        ] {
            let target: Target = url.parse().expect(url);
            assert_eq!(
                (
                    target.is_tls,
                    target.host.as_str(),
                    target.ports,
                    target.path.as_str()
                ),
                (is_tls, host, ports, path)
            );
        }
    }

    #[test]
    fn target_is_displayed_as_parsed() {
        for url in [
            "http://h/",
            "http://h:8080-8083/x",
            "https://[::1]:8443/",
            "https://h/a?b=c",
        ] {
            assert_eq!(url.parse::<Target>().expect(url).to_string(), url);
        }
    }

    #[test]
    fn invalid_url_is_refused_with_reason() {
        for (url, reason) in [
            ("10.0.0.2:80", "no scheme"),
            ("ftp://h/", "neither http nor https"),
            ("http:///x", "no name"),
            ("http://u:p@h/", "a user"),
            ("http://h:0/", "1 to 65535"),
            ("http://h:90-80/", "1 to 65535"),
            ("http://h:65536/", "1 to 65535"),
            ("http://[::1/", "not closed"),
            ("http://[::g]/", "no IPv6"),
            ("http://h/a b", "%XX"),
            ("http://h/a\r\nX: y", "%XX"),
            ("http://h\r\nX:/", "no name"),
            ("http://h/#a", "fragment"),
        ] {
            let error = url.parse::<Target>().expect_err(url).to_string();
            assert!(error.contains(reason), "{error}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }
}
