//! Services of the program that embeds this product: a view on the terminal, and the identity of a
//! server.

use std::path::{Path, PathBuf};

use linerate_engine::dialect::native::client::{IdentityDemand, Peer, Target};
use linerate_model::live::LiveState;
use linerate_model::outcome::Error;

/// A view of what runs. It ends when it is dropped.
pub trait LiveView {
    /// Changes the state that is shown.
    fn update(&self, change: &mut dyn FnMut(&mut LiveState));
}

/// Parses `HOST` or `HOST:PORT` with a default port.
pub(crate) type HostAndPort = fn(&str, u16) -> Result<(String, u16), String>;

/// Functions of the program that runs a load or an experiment.
#[derive(Debug, Clone, Copy)]
pub struct Embedding {
    /// Opens a view on the terminal; `None` where there is no terminal that can show it.
    pub open_view: fn() -> Option<Box<dyn LiveView>>,
    /// Host and port of `HOST` or `HOST:PORT` with this default port.
    pub host_and_port: HostAndPort,
    /// The identity that a server has to prove, with the token of this file.
    pub identity_demand: fn(Option<&Path>, &Target) -> Result<IdentityDemand, Error>,
    /// Keeps the key of a server that was met for the first time; remarks for the user.
    pub remember_identity: fn(&Target, &Peer) -> Vec<String>,
}

/// Identity that is demanded of a control channel.
#[derive(Debug, Clone)]
pub(super) struct ControlIdentity {
    pub(super) token_file: Option<PathBuf>,
    pub(super) embedding: Embedding,
}

impl ControlIdentity {
    /// # Errors
    /// A token file that cannot be used.
    pub(super) fn demand(&self, server: &Target) -> Result<IdentityDemand, Error> {
        (self.embedding.identity_demand)(self.token_file.as_deref(), server)
    }

    /// Remarks on the key of a server that was met for the first time.
    pub(super) fn remember(&self, server: &Target, peer: &Peer) -> Vec<String> {
        (self.embedding.remember_identity)(server, peer)
    }
}
