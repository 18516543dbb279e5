//! The control channel of a server: the native dialect for the lab's requests, on a port of its
//! own.
//!
//! It has a listener and a thread of its own, so it responds when the port under test does not.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_engine::dialect::native::server::{self as native, RequestHandler};
use linerate_model::network::Network;
use linerate_model::policy::{AccessRules, AccessSource, NativePolicy};
use linerate_trust::Tokens;

use crate::path::host_key_file;
use crate::server::{self, Server, in_use};
use crate::{Error, Outcome};

/// Address and access of a control channel.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControlChannel {
    /// Where it listens; port 0: chosen by the kernel.
    pub address: SocketAddr,
    /// The address was given, so that no other will do.
    pub is_address_chosen: bool,
    /// File of the tokens, one of which a client has to prove; created if it does not exist.
    /// Without one only this host and [`Self::allow`] have access.
    pub token_file: Option<PathBuf>,
    /// Networks with access besides this host. Empty with a token: everyone who proves it.
    pub allow: Vec<Network>,
}

impl ControlChannel {
    /// A channel at `address` to which only this host has access.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            is_address_chosen: false,
            token_file: None,
            allow: Vec::new(),
        }
    }

    /// Networks with access; none for all.
    fn networks(&self) -> Vec<Network> {
        // A token proves a client from any address.
        if self.token_file.is_some() && self.allow.is_empty() {
            return Vec::new();
        }

        let this_host = ["127.0.0.0/8", "::1"]
            .into_iter()
            .filter_map(|network| network.parse().ok());
        this_host.chain(self.allow.iter().copied()).collect()
    }
}

/// An open control channel. Dropping it ends its sessions.
pub(super) struct OpenChannel {
    server: Server,
    key: Option<String>,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

impl OpenChannel {
    /// Opens a channel whose requests `handler` handles.
    ///
    /// # Errors
    /// [`Outcome::Usage`] for a token file that cannot be used; otherwise an address that cannot be
    /// bound.
    pub(super) fn open(
        channel: &ControlChannel,
        handler: Arc<dyn RequestHandler>,
    ) -> Result<Self, Error> {
        // The file is made before the listener opens, so the first client finds it.
        if let Some(path) = &channel.token_file {
            Tokens::load_or_create(path).map_err(Error::usage)?;
        }

        let (host_key, warnings) = match host_key_file() {
            Ok(file) => (Some(file), Vec::new()),
            Err(error) => (
                None,
                vec![format!(
                    "clients will not recognise this server after a restart: {error}"
                )],
            ),
        };
        let address = channel.address;

        // Without a host the listener is for both families.
        let is_everywhere = address.is_ipv6() && address.ip().is_unspecified();
        let host = (!is_everywhere).then(|| address.ip().to_string());

        let allow = channel
            .networks()
            .into_iter()
            .map(AccessSource::Network)
            .collect();
        let mut spec = server::spec(host, address.port(), AccessRules::new(allow, Vec::new()));
        let native_policy = NativePolicy {
            host_key,
            tokens: channel.token_file.clone(),
        };
        spec.policy.native = Some(native_policy);

        let server = Server::spawn("lr-control", move |reporter, interrupts| {
            native::run(&spec, handler, reporter, interrupts)
        });
        let server = server.map_err(|failure| {
            let text = format!("control channel {address}: {failure}");
            Error::new(
                Outcome::NotCompleted,
                in_use::explained(&text, address.port(), CHOOSE),
            )
        })?;
        // The server announces its key after its address, so this waits for a short time only.
        let key = server.host_key();

        Ok(Self {
            server,
            key,
            warnings,
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Address and key, one line each.
    pub(super) fn introduction(&self) -> String {
        let key = self.key.as_deref().unwrap_or("unknown");
        format!("  control      {}\n  key          {key}\n", self.address())
    }
}

const CHOOSE: &str = "choose another one with --control";

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn without_a_token_this_host_and_named_networks_have_access() {
        let channel = |token: bool, allow: &[&str]| ControlChannel {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            is_address_chosen: false,
            token_file: token.then(|| "t".into()),
            allow: allow
                .iter()
                .map(|network| network.parse().expect("a network"))
                .collect(),
        };
        let rows: [(ControlChannel, &str, bool); 8] = [
            (channel(false, &[]), "127.0.0.1", true),
            (channel(false, &[]), "::1", true),
            (channel(false, &[]), "10.0.0.1", false),
            (channel(false, &["10.0.0.0/8"]), "10.0.0.1", true),
            (channel(false, &["10.0.0.0/8"]), "11.0.0.1", false),
            (channel(true, &[]), "11.0.0.1", true),
            (channel(true, &["10.0.0.0/8"]), "11.0.0.1", false),
            (channel(true, &["10.0.0.0/8"]), "10.0.0.1", true),
        ];
        for (channel, peer, expected) in rows {
            let peer: IpAddr = peer.parse().expect("an address");
            let networks = channel.networks();
            let is_admitted =
                networks.is_empty() || networks.iter().any(|network| network.contains(peer));
            assert_eq!(is_admitted, expected, "{channel:?} {peer}");
        }
    }
}
