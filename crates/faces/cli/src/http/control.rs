//! Options of the control channel of a server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use linerate_model::network::Network;

use linerate::http::agent::ControlChannel;

/// Address and access of the control channel.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Control channel")]
pub(crate) struct ControlArgs {
    /// Listen here for clients of the control channel [default: the port after the one under test]
    ///
    /// Without --token-file and --control-allow it listens on the loopback address, otherwise on
    /// all addresses.
    #[arg(long, value_name = "ADDRESS:PORT")]
    control: Option<SocketAddr>,
    /// Give access to this host and these networks only; may be repeated
    #[arg(long, value_name = "CIDR")]
    control_allow: Vec<Network>,
    /// Clients prove that they have a token of this file [default: only this host and
    /// --control-allow have access]
    ///
    /// The file has lines of SECRET or NAME SECRET, as that of `linerate serve --tokens`. It is
    /// created, readable for its owner only, if it does not exist.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl ControlArgs {
    /// Resolves the address beside a port under test.
    ///
    /// # Errors
    /// An address that other hosts reach, without a rule which of them have access.
    pub(crate) fn resolve(&self, port: u16) -> Result<ControlChannel, String> {
        let is_for_this_host = self.token_file.is_none() && self.control_allow.is_empty();
        let address = self
            .control
            .unwrap_or_else(|| default_address(port, is_for_this_host));
        // Without a token or a list any host that reaches the address would have access.
        if is_for_this_host && !address.ip().is_loopback() {
            return Err(format!(
                "without --token-file only this host has access, so listening on {address} needs \
                 --control-allow"
            ));
        }

        let mut channel = ControlChannel::new(address);
        channel.is_address_chosen = self.control.is_some();
        channel.token_file = self.token_file.clone();
        channel.allow = self.control_allow.clone();

        Ok(channel)
    }
}

fn default_address(port: u16, is_for_this_host: bool) -> SocketAddr {
    let port = match port {
        // Both ports are chosen by the kernel.
        0 => 0,
        // The highest port has no successor.
        port => port.checked_add(1).unwrap_or(port - 1),
    };
    if is_for_this_host {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    } else {
        // A socket at the unspecified address of IPv6 serves both families (ipv6(7)).
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ControlArgs,
    }

    fn resolve(line: &str) -> Result<ControlChannel, String> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        Line::try_parse_from(words)
            .map_err(|error| error.to_string())?
            .args
            .resolve(8080)
    }

    #[test]
    fn the_channel_is_the_next_port_of_this_host_until_others_are_admitted() {
        let rows = [
            ("", "127.0.0.1:8081"),
            ("--token-file t", "[::]:8081"),
            ("--control-allow 10.0.0.0/8", "[::]:8081"),
            ("--control 127.0.0.1:9", "127.0.0.1:9"),
            ("--control 0.0.0.0:9 --token-file t", "0.0.0.0:9"),
        ];
        for (line, expected) in rows {
            assert_eq!(
                resolve(line).expect(line).address.to_string(),
                expected,
                "{line}"
            );
        }

        assert_eq!(default_address(u16::MAX, true).port(), u16::MAX - 1);
        assert_eq!(default_address(0, true).port(), 0);
    }

    #[test]
    fn what_would_be_open_to_all_is_refused() {
        let rows = [
            ("--control 0.0.0.0:9", "--control-allow"),
            ("--control-allow 10.0.0.0/99", "10.0.0.0/99"),
            ("--control 8081", "8081"),
        ];
        for (line, part) in rows {
            let error = resolve(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
