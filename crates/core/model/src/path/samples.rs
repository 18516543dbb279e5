//! Single probes of an examination, for analysis by other programs.

use serde::Serialize;

use super::PhaseKind;

/// Kind of a probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleKind {
    /// The datagram or connection that [`super::ProbeKind`] of the report names.
    #[default]
    Probe,
    /// TCP handshake of a new connection.
    TcpHandshake,
    /// One round trip of a TLS handshake over a new connection.
    TlsHandshake,
    /// Echo of one message over a new connection.
    Echo,
    /// Echo within a stream of the load.
    InBand,
    /// A transaction.
    Transaction,
}

/// All probes of one kind in one phase: columns of the same length, in the order in which the
/// probes left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SampleSeries {
    /// The phase.
    pub phase: PhaseKind,
    /// Kind of the probes.
    pub kind: SampleKind,
    /// DSCP of further probe flows; absent of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// When each left this end, ns since the start of the phase.
    pub sent_ns: Vec<i64>,
    /// Round trip without the time at the other end, ns; `None` of one that was lost.
    pub rtt_ns: Vec<Option<i64>>,
    /// Delay from client to server, ns, with the error of [`super::ClockEstimate`]; empty where no
    /// probe of the series shows one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub up_ns: Vec<Option<i64>>,
    /// Delay from server to client, likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub down_ns: Vec<Option<i64>>,
}

impl SampleSeries {
    /// A series without probes.
    pub fn new(phase: PhaseKind, kind: SampleKind) -> Self {
        Self {
            phase,
            kind,
            ..Self::default()
        }
    }
}
