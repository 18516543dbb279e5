//! Examines a path to a native server, one phase after the other.

mod connect;
mod connect_race;
mod control;
mod datagram_phase;
mod event_loop;
mod flow;
mod handshake;
mod hops;
mod load_phase;
mod path_mtu;
mod phase;
mod prober;
mod requests;
mod streams;
mod transactions;

pub use connect::{Established, Opened, connect, open};
pub use connect_race::{Connection, Target, bind};
pub use control::{Announcement, NativeClient, Turn};
pub use handshake::secure;
pub use load_phase::LoadController;

use std::io::{self, ErrorKind};

use linerate_model::path::Identity;
use linerate_sys::OsError;
use linerate_trust::{Fingerprint, Token};

use crate::error::EngineError;

/// Demands of the user on the server's identity.
#[derive(Debug, Default)]
pub struct IdentityDemand {
    /// Its key has this fingerprint.
    pub pin: Option<Fingerprint>,
    /// It proves that it has this token.
    pub token: Option<Token>,
    /// Key of earlier tests.
    pub known: Option<Fingerprint>,
    /// Sent to a server whose key is that of the pin or of earlier tests.
    pub login: Option<Login>,
    /// The login is sent also to a server that is met for the first time.
    pub accept_new: bool,
    /// Nothing is demanded.
    pub insecure: bool,
    /// A server of another dialect is a failure.
    pub requires_native: bool,
}

/// User and password for a server that demands them.
#[derive(Clone)]
pub struct Login {
    /// Name of the user.
    pub user: String,
    /// Password.
    pub password: String,
}

impl Login {
    /// The user `user` with `password`.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            password: password.into(),
        }
    }
}

impl std::fmt::Debug for Login {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The server as it was found.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Address of its streams and flows.
    pub remote: std::net::SocketAddr,
    /// Address of its control connection.
    pub control: std::net::SocketAddr,
    /// Its identity, as far as it is known.
    pub identity: Identity,
    /// Its key.
    pub fingerprint: Fingerprint,
    /// Time of a TCP handshake with `remote`.
    pub connect_time: std::time::Duration,
}

/// Why an examination could not begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// No address of the server answers.
    #[error("unable to connect: {0}")]
    Unreachable(String),
    /// No program listens at the server's address.
    #[error("{0}")]
    ConnectionRefused(String),
    /// The server does not speak this protocol, though that was demanded.
    #[error("{0}")]
    NotNative(String),
    /// The server's identity is not the one that was demanded.
    #[error("{0}")]
    Identity(String),
    /// A rule of the server.
    #[error("the server refuses the test: {text} ({clause}){}", option_for(.clause))]
    Refused {
        /// Which rule.
        clause: String,
        /// Its demand.
        text: String,
    },
    /// The server does not handle a request; the session continues.
    #[error("the server refuses the request: {text} ({clause})")]
    RequestRefused {
        /// Short name of the reason.
        clause: String,
        /// Explanation.
        text: String,
    },
    /// The server violates the protocol, or is gone.
    #[error("the control connection failed: {0}")]
    Protocol(String),
    /// This host has no socket, thread or memory for it.
    #[error("{0}")]
    System(String),
    /// The user ended it with this signal.
    #[error("interrupted by signal {0}")]
    Interrupted(String),
}

impl From<EngineError> for NativeError {
    fn from(error: EngineError) -> Self {
        Self::System(error.to_string())
    }
}

impl From<OsError> for NativeError {
    fn from(error: OsError) -> Self {
        Self::System(error.to_string())
    }
}

impl From<io::Error> for NativeError {
    fn from(error: io::Error) -> Self {
        Self::System(error.to_string())
    }
}

impl NativeError {
    /// No server listens at the port, or it is busy: another port may serve.
    pub fn is_taken(&self) -> bool {
        match self {
            Self::ConnectionRefused(_) => true,
            Self::Refused { clause, .. } => clause == control::BUSY,
            _ => false,
        }
    }
}

/// A server that takes no stream with this token has closed the connection.
fn is_refusal(error: &io::Error) -> bool {
    use ErrorKind as K;
    matches!(
        error.kind(),
        K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe | K::UnexpectedEof
    )
}

/// Decides whether a server's key is acceptable.
///
/// # Errors
/// Both keys and what to do, when another one was demanded.
fn judge(demand: &IdentityDemand, found: Fingerprint, host: &str) -> Result<Identity, NativeError> {
    if let Some(pin) = demand.pin {
        return if pin == found {
            Ok(Identity::Pinned)
        } else {
            Err(NativeError::Identity(format!(
                "the key of {host} is {found}, not {pin} as demanded by --pin"
            )))
        };
    }
    if demand.insecure {
        return Ok(Identity::Unproven);
    }

    match demand.known {
        Some(known) if known == found => Ok(Identity::Known),
        Some(known) => Err(NativeError::Identity(format!(
            "the key of {host} has changed: it is {found}, earlier tests had {known}; if the \
             server was reinstalled, run `linerate test --forget {host}` and test again"
        ))),
        None => Ok(Identity::New),
    }
}

/// The option of `linerate test` that a limit of the server is about.
fn option_for(clause: &str) -> &'static str {
    match clause {
        "duration" => "; give --time SECONDS or --profile quick",
        "streams" => "; give --streams N",
        "bytes" => "; give --max-bytes N",
        "rate" => "; give --rate RATE",
        "busy" => "; give --wait SECONDS",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_compared_with_the_pin_then_with_that_of_earlier_tests() {
        let key = |byte: u8| -> Fingerprint { Fingerprint::new([byte; 32]) };
        let judged = |demand: &IdentityDemand| {
            judge(demand, key(1), "host").map_err(|error| error.to_string())
        };
        assert_eq!(
            judged(&IdentityDemand {
                pin: Some(key(1)),
                known: Some(key(2)),
                ..Default::default()
            }),
            Ok(Identity::Pinned)
        );
        assert!(
            judged(&IdentityDemand {
                pin: Some(key(2)),
                insecure: true,
                ..Default::default()
            })
            .is_err()
        );
        assert_eq!(
            judged(&IdentityDemand {
                known: Some(key(1)),
                ..Default::default()
            }),
            Ok(Identity::Known)
        );

        let changed = judged(&IdentityDemand {
            known: Some(key(2)),
            ..Default::default()
        })
        .unwrap_err();
        assert!(
            changed.contains(&key(1).to_string()) && changed.contains(&key(2).to_string()),
            "{changed}"
        );
        assert_eq!(judged(&IdentityDemand::default()), Ok(Identity::New));
        assert_eq!(
            judged(&IdentityDemand {
                insecure: true,
                known: Some(key(2)),
                ..Default::default()
            }),
            Ok(Identity::Unproven)
        );
    }
}
