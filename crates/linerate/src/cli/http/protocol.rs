//! How a server is spoken to, on the command line.

use std::path::PathBuf;

use clap::Args;
use linerate_http::protocol::{Protocol, TlsPeer, Trust};
use linerate_http::target::Target;

/// HTTP/2 and TLS.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Protocol (HTTP/1.1 unless --h2 is given; https URLs are asked over TLS)")]
pub(crate) struct ProtocolArgs {
    /// HTTP/2: agreed on by ALPN over TLS, without asking before in plain text
    #[arg(long)]
    h2: bool,
    /// Requests at a time on each connection of HTTP/2
    #[arg(short = 'm', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    streams: u32,
    /// Believe any certificate
    #[arg(short = 'k', long, conflicts_with_all = ["cacert", "pin_sha256"])]
    insecure: bool,
    /// PEM file with the authorities to believe, instead of this host's
    #[arg(long, value_name = "FILE", conflicts_with = "pin_sha256")]
    cacert: Option<PathBuf>,
    /// Believe the certificate with this SHA-256 and no other; http serve --tls prints that of its own
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    pin_sha256: Option<Fingerprint>,
}

/// SHA-256 of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint([u8; 32]);

impl ProtocolArgs {
    /// # Errors
    /// Options that have no meaning for this URL.
    pub(crate) fn resolve(&self, target: &Target) -> Result<Protocol, String> {
        let has_trust = self.insecure || self.cacert.is_some() || self.pin_sha256.is_some();
        if has_trust && !target.is_tls {
            return Err(
                "--insecure, --cacert and --pin-sha256 are about certificates, which only https has".to_owned(),
            );
        }
        if self.streams > 1 && !self.h2 {
            return Err(
                "--streams is for HTTP/2 (--h2); --pipeline N has as many under way in HTTP/1.1 in plain text"
                    .to_owned(),
            );
        }
        Ok(Protocol {
            is_http2: self.h2,
            tls: target.is_tls.then(|| TlsPeer {
                name: target.host.clone(),
                trust: self.trust(),
            }),
        })
    }

    /// Requests at a time on a connection.
    pub(crate) fn streams(&self) -> u32 {
        self.streams
    }

    fn trust(&self) -> Trust {
        match (&self.cacert, self.pin_sha256) {
            _ if self.insecure => Trust::Anything,
            (Some(file), _) => Trust::File(file.clone()),
            (_, Some(Fingerprint(bytes))) => Trust::Pinned(bytes),
            (None, None) => Trust::System,
        }
    }
}

/// 64 hexadecimal digits, with or without colons between pairs.
fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    let wrong = || "not a SHA-256: 64 hexadecimal digits, with or without colons".to_owned();
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    if digits.len() != 64 {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(Fingerprint(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_openssl_and_browsers_write_it() {
        let colons = vec!["aB"; 32].join(":");
        assert_eq!(fingerprint(&colons), Ok(Fingerprint([0xab; 32])));
        assert_eq!(fingerprint(&"AB".repeat(32)), Ok(Fingerprint([0xab; 32])));
        for wrong in ["", "ab", &"ab".repeat(33), &"+b".repeat(32), &"ä".repeat(32)] {
            assert!(fingerprint(wrong).is_err(), "{wrong:?}");
        }
    }
}
