//! Messages of the server.

use linerate_model::path::EndpointPhase;
use serde::{Deserialize, Serialize};

use super::fault::cut;
use super::{Fault, JsonText, Message, SERVER_MESSAGE_MAX_BYTES, TOKENS_MAX, bounds};

/// A message of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// Proof of the token that the client has proved.
    Prove {
        /// HMAC-SHA-256, 64 hexadecimal digits.
        proof: String,
    },
    /// The session begins.
    Welcome(Box<Welcome>),
    /// The client is in the queue. At most once per second.
    Turn(Turn),
    /// The session, or the phase that was to be opened, is refused.
    Refused(Refusal),
    /// The phase can be started.
    Ready(Ready),
    /// The phase began.
    Started {
        /// Number of the phase.
        phase: u32,
        /// Server's monotonic clock, ns.
        at_ns: u64,
    },
    /// The phase ended.
    PhaseResult {
        /// Number of the phase.
        phase: u32,
        /// Measurements of the server.
        result: Box<EndpointPhase>,
    },
    /// Answer to the client's clock. Not repeated.
    Clock(ClockReply),
    /// Facts of the server's host.
    Facts {
        /// JSON; `null` where there are none.
        facts: JsonText,
    },
    /// Response to the request of the client.
    Response {
        /// JSON.
        body: JsonText,
    },
    /// The request of the client is refused; the session continues.
    RequestRefused {
        /// Short name of the reason.
        clause: String,
        /// Explanation.
        text: String,
    },
    /// The client's last message was wrong; the session ends.
    Fault(Fault),
    /// The session continues over this connection. Not repeated.
    Resumed {
        /// Number of the last message that arrived at the server.
        received: u64,
    },
    /// Holds the connection open. Not repeated.
    Keep,
    /// The session ends.
    Bye {
        /// Why.
        reason: String,
    },
}

/// Place of a client in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Clients before it in the queue.
    pub position: u32,
    /// Expected wait in ms.
    pub wait_ms: u64,
}

/// Why a session or a phase is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Short name of the reason.
    pub clause: String,
    /// Explanation.
    pub text: String,
    /// The limit that applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

impl Refusal {
    /// A refusal where no limit applies.
    pub fn new(clause: &str, text: impl Into<String>) -> Self {
        Self {
            clause: clause.to_owned(),
            text: text.into(),
            limit: None,
        }
    }
}

/// Times of a request for the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReply {
    /// Client's monotonic clock when it left, ns (t1).
    pub sent_ns: u64,
    /// When it arrived, server's monotonic clock, ns (t2).
    pub received_ns: u64,
    /// When the answer left (t3).
    pub replied_ns: u64,
}

/// The session and its limits.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Minor version.
    pub minor: u32,
    /// Optional parts of the protocol that both ends have.
    #[serde(default)]
    pub features: Vec<String>,
    /// Name and version of the program.
    pub program: String,
    /// Name of the session.
    pub session: String,
    /// Key of resumptions, 64 hexadecimal digits.
    pub resume_secret: String,
    /// Key of the tags of flows, 64 hexadecimal digits.
    pub flow_secret: String,
    /// Server's monotonic clock, ns.
    pub server_ns: u64,
    /// SHA-256 of the host's boot id, 64 hexadecimal digits; absent where the host has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Largest error of the host's wall clock as its kernel knows it (`maxerror`, adjtimex(2)), ns;
    /// absent of a clock that is not synchronised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// The host's wall clock minus its monotonic clock, ns; absent with [`Self::clock_error_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realtime_offset_ns: Option<i64>,
    /// Other tests of the server at this moment.
    pub concurrent: u32,
    /// Facts of the host may be requested.
    #[serde(default)]
    pub facts: bool,
    /// Limits of a phase.
    #[serde(default)]
    pub limits: Limits,
}

debug_without_secrets!(Welcome: program, session);

/// Grants of the server for a session; absent without a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Most streams of a phase per direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_max: Option<u32>,
    /// Most connections of requests and responses at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<u32>,
    /// Longest time of all phases, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_max_ns: Option<u64>,
    /// Highest rate in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Most bytes of all phases, both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
}

/// Tokens of a phase; 32 hexadecimal digits each, at most [`TOKENS_MAX`] together.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Number of the phase.
    pub phase: u32,
    /// Tokens of streams.
    #[serde(default)]
    pub streams: Vec<String>,
    /// Tokens of UDP flows.
    #[serde(default)]
    pub flows: Vec<FlowGrant>,
    /// Tokens of probes over new connections.
    #[serde(default)]
    pub probes: Vec<String>,
    /// Parts of the phase that the server lacks, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

debug_without_secrets!(Ready: phase, notes);

/// A UDP flow that the client may open.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowGrant {
    /// Number of the flow in its session.
    pub flow: u32,
    /// Single-use token, 32 hexadecimal digits.
    pub token: String,
}

debug_without_secrets!(FlowGrant: flow);

impl Message for ServerMessage {
    const MAX_BYTES: u32 = SERVER_MESSAGE_MAX_BYTES;

    fn is_numbered(&self) -> bool {
        !matches!(self, Self::Keep | Self::Clock(_) | Self::Resumed { .. })
    }

    fn check(&mut self) -> Result<(), Fault> {
        match self {
            Self::Prove { proof } => bounds::hex::<32>("proof", proof),
            Self::Welcome(welcome) => welcome.check(),
            Self::Refused(refusal) => {
                cut(&mut refusal.clause);
                cut(&mut refusal.text);
                refusal.limit.iter_mut().for_each(cut);
                Ok(())
            }
            Self::RequestRefused { clause, text } => {
                cut(clause);
                cut(text);
                Ok(())
            }
            Self::Ready(ready) => ready.check(),
            Self::PhaseResult { result, .. } => bounds::result(result),
            Self::Fault(fault) => {
                fault.cut();
                Ok(())
            }
            Self::Bye { reason } => {
                cut(reason);
                Ok(())
            }
            Self::Turn(_)
            | Self::Started { .. }
            | Self::Clock(_)
            | Self::Facts { .. }
            | Self::Response { .. }
            | Self::Resumed { .. }
            | Self::Keep => Ok(()),
        }
    }
}

impl Welcome {
    fn check(&self) -> Result<(), Fault> {
        bounds::names("features", &self.features)?;
        bounds::name("program", &self.program)?;
        bounds::name("session", &self.session)?;
        bounds::hex::<32>("resume_secret", &self.resume_secret)?;
        bounds::hex::<32>("flow_secret", &self.flow_secret)?;

        self.boot_id
            .as_deref()
            .map_or(Ok(()), |text| bounds::hex::<32>("boot_id", text))
    }
}

impl Ready {
    fn check(&mut self) -> Result<(), Fault> {
        for (member, len) in [("streams", self.streams.len()), ("flows", self.flows.len())] {
            bounds::count(member, len, TOKENS_MAX)?;
        }

        let together = self
            .streams
            .len()
            .saturating_add(self.flows.len())
            .saturating_add(self.probes.len());
        bounds::count("probes", together, TOKENS_MAX)?;
        self.streams
            .iter()
            .try_for_each(|token| bounds::hex::<16>("streams", token))?;
        self.flows
            .iter()
            .try_for_each(|grant| bounds::hex::<16>("flows.token", &grant.token))?;
        self.probes
            .iter()
            .try_for_each(|token| bounds::hex::<16>("probes", token))?;

        bounds::notes("notes", &mut self.notes)
    }
}
