//! A test of a path as the user requests it.

use std::path::PathBuf;
use std::time::Duration;

use linerate_engine::dialect::native::client::{Login, Target};
use linerate_model::PortRange;
use linerate_model::http::Trust;
use linerate_model::path::PathSpec;

pub use linerate_engine::dialect::stamp::client::PORT as STAMP_PORT;

/// Object and options of an examination.
#[derive(Debug, Clone)]
pub struct PathTest {
    /// The server.
    pub target: Target,
    /// Its ports, of which the first free one replaces that of the target.
    pub ports: Option<PortRange>,
    /// The protocol is ndt7; without it the server's first bytes decide.
    pub is_ndt7: bool,
    /// Certificates that are trusted with TLS; `None` without.
    pub ndt7_trust: Option<Trust>,
    /// Phases, time and data.
    pub spec: PathSpec,
    /// Demands on its identity.
    pub identity: IdentityOptions,
    /// The server's facts are wanted for the diagnosis.
    pub wants_facts: bool,
    /// The hops have their names in the DNS.
    pub wants_names: bool,
    /// Longest wait for a server that is busy.
    pub wait_max: Duration,
    /// Number of examinations, at least one.
    pub repeat: u32,
    /// Probe that measures the delay beside the tests of an iperf3 server.
    pub side_probe: SideProbe,
    /// The result has every single probe.
    pub wants_samples: bool,
    /// The result has what the CPUs of this host did during the loads.
    pub wants_stacks: bool,
}

/// Probe that measures the delay beside the tests of an iperf3 server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SideProbe {
    /// The first of the others that works.
    #[default]
    Auto,
    /// ICMP echo.
    Icmp,
    /// Connections to the port of the server while it is busy; it refuses them at once.
    Busy,
    /// Connections to another TCP port of the server's host, which are closed once they are
    /// established.
    Tcp(u16),
    /// Nothing.
    None,
}

/// Demands of the user on the server's identity.
#[derive(Debug, Clone, Default)]
pub struct IdentityOptions {
    /// Fingerprint of its key: `sha256:…`.
    pub pin: Option<String>,
    /// File of a token that both ends prove.
    pub token_file: Option<PathBuf>,
    /// User and password for a server that demands them.
    pub login: Option<Login>,
    /// The login is sent also to a server that is met for the first time.
    pub accept_new: bool,
    /// Nothing is demanded, and nothing is remembered.
    pub insecure: bool,
    /// A server of another dialect is a failure.
    pub requires_native: bool,
}

/// Host and port of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, or an IPv6 address; `default_port` where
/// none is named.
///
/// # Errors
/// A text with another form.
pub fn host_and_port(text: &str, default_port: u16) -> Result<(String, u16), String> {
    let with_port = |host: &str, port: &str| match port.parse() {
        Ok(port) if port > 0 => Ok((host.to_owned(), port)),
        _ => Err(format!("{text}: {port} is not a port, 1 to 65535")),
    };
    if text.is_empty() || text.contains('/') {
        return Err(format!(
            "'{text}' is not a server: expected HOST or HOST:PORT"
        ));
    }
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => with_port(host, port),
            None => Ok((host.to_owned(), default_port)),
        };
    }

    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => with_port(host, port),
        _ => Ok((text.to_owned(), default_port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_with_and_without_a_port() {
        for (text, host, port) in [
            ("lab.example", "lab.example", 9),
            ("lab.example:5300", "lab.example", 5300),
            ("192.0.2.7:1", "192.0.2.7", 1),
            ("2001:db8::7", "2001:db8::7", 9),
            ("[2001:db8::7]", "2001:db8::7", 9),
            ("[2001:db8::7]:5300", "2001:db8::7", 5300),
        ] {
            assert_eq!(
                host_and_port(text, 9),
                Ok((host.to_owned(), port)),
                "{text}"
            );
        }

        for text in ["", "h:0", "h:65536", "h:x", "[::1]:", "http://h:1", "h/1"] {
            assert!(host_and_port(text, 9).is_err(), "{text}");
        }
    }
}
