//! Messages of the client.

use linerate_model::path::{PhaseKind, PhaseSpec};
use serde::{Deserialize, Serialize};

use super::{CLIENT_MESSAGE_MAX_BYTES, Fault, JsonText, Message, bounds};

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientMessage {
    /// First message: who is there and what is wanted.
    Hello(Box<Hello>),
    /// Requests tokens for a phase.
    OpenPhase {
        /// Number of the phase, ascending from 1.
        phase: u32,
        /// The phase.
        spec: PhaseSpec,
    },
    /// The phase begins.
    Start {
        /// Number of the phase.
        phase: u32,
    },
    /// The phase ends; in the queue, with 0, the client leaves.
    Stop {
        /// Number of the phase.
        phase: u32,
    },
    /// Requests the server's clock. Not repeated.
    Clock {
        /// Client's monotonic clock, ns (t1).
        sent_ns: u64,
    },
    /// Requests the facts of the server's host.
    WantFacts,
    /// Requests what a program at the server provides beside tests. One at a time.
    Request {
        /// Name of the request.
        name: String,
        /// Its arguments: JSON of at most [`super::REQUEST_BODY_MAX_BYTES`].
        body: JsonText,
    },
    /// Holds the connection open. Not repeated.
    Keep,
    /// First message of a connection that replaces a lost one. Not repeated.
    Resume(Resume),
    /// The server's last message was wrong; the session ends.
    Fault(Fault),
    /// The session ends.
    Bye,
}

/// Identity and requirements of the client.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Minor version.
    pub minor: u32,
    /// Names of optional parts of the protocol that the client has.
    #[serde(default)]
    pub features: Vec<String>,
    /// Name and version of the program.
    pub program: String,
    /// A token that both ends know. The client proves its knowledge first: a server that did would
    /// give every stranger something to guess the token by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenProof>,
    /// Name of a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Password of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Most streams of a phase per direction.
    pub streams_max: u32,
    /// Most connections of requests and responses at the same time, at most
    /// [`super::TRANSACTION_STREAMS_MAX`].
    #[serde(default)]
    pub connections_max: u32,
    /// Longest time of all phases together, ns.
    pub duration_max_ns: u64,
    /// Highest rate in bit/s; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Most bytes of all phases, both directions; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// Phases that are wanted; none for a session of requests alone.
    pub wants: Vec<PhaseKind>,
    /// Facts of the server's host are wanted.
    #[serde(default)]
    pub wants_facts: bool,
}

/// Knowledge of a token.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenProof {
    /// Name of the token.
    pub name: String,
    /// HMAC-SHA-256 with the token over the keys of the connection, 64 hexadecimal digits.
    pub proof: String,
}

debug_without_secrets!(TokenProof: name);

debug_without_secrets!(Hello: program, wants);

/// Continues a session over a new connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The session, [`super::Welcome::session`].
    pub session: String,
    /// Number of the last message that the client sent.
    pub number: u64,
    /// Number of the last message that arrived at the client.
    pub received: u64,
    /// HMAC-SHA-256 with the resume secret over exporter and both numbers, 64 hexadecimal digits.
    pub proof: String,
}

impl Message for ClientMessage {
    const MAX_BYTES: u32 = CLIENT_MESSAGE_MAX_BYTES;

    fn is_numbered(&self) -> bool {
        !matches!(self, Self::Keep | Self::Clock { .. } | Self::Resume(_))
    }

    fn check(&mut self) -> Result<(), Fault> {
        match self {
            Self::Hello(hello) => {
                bounds::names("features", &hello.features)?;
                bounds::name("program", &hello.program)?;
                bounds::count("wants", hello.wants.len(), PhaseKind::ALL.len())?;

                if let Some(token) = &hello.token {
                    bounds::name("token.name", &token.name)?;
                    bounds::hex::<32>("token.proof", &token.proof)?;
                }

                if let Some(user) = &hello.user {
                    bounds::name("user", user)?;
                }
                if let Some(password) = &hello.password {
                    bounds::password("password", password)?;
                }
                Ok(())
            }
            Self::OpenPhase { spec, .. } => bounds::spec(spec),
            Self::Request { name, body } => {
                bounds::name("name", name)?;
                bounds::json("body", body)
            }
            Self::Resume(resume) => {
                bounds::name("session", &resume.session)?;
                bounds::hex::<32>("proof", &resume.proof)
            }
            Self::Fault(fault) => {
                fault.cut();
                Ok(())
            }
            Self::Start { .. }
            | Self::Stop { .. }
            | Self::Clock { .. }
            | Self::WantFacts
            | Self::Keep
            | Self::Bye => Ok(()),
        }
    }
}
