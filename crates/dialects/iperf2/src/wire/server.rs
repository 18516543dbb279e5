//! One connection or flow of a test seen from the server.
//!
//! Sessions are independent: the listener groups the connections of one address.

mod flow;
mod stream;

use std::time::Duration;

use linerate_model::{Failure, FailureKind, TestSpec};

use crate::wire::header::Header;
use crate::wire::opening::Opening;
use crate::wire::stamp::Timestamp;
use crate::wire::version::Version;

pub use flow::{FlowRefusal, FlowServer, REPORT_SILENCE, REPORTS_MAX};
pub use stream::StreamServer;

/// Largest difference of the clocks at which one-way delays are valid.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(600);

/// Demands and limits of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Longest wait for a header once a connection is open.
    pub handshake_timeout: Duration,
    /// Word clients must know.
    pub permit_key: Option<Vec<u8>>,
    /// Clients may make the server connect back to them.
    pub may_connect_back: bool,
    /// A flow without datagrams for so long has ended.
    pub idle_timeout: Duration,
    /// Datagrams that must come from an address before anything large is sent to it. Real clients
    /// repeat their first one until they are served, so 2 refuses only senders that forge their
    /// address.
    pub datagrams_before_sending: u32,
    /// Bounds of UDP data towards clients; `None` when flows that ask for it are refused.
    pub udp_reverse: Option<UdpReverse>,
    /// Final reports of flows contain one-way delays even if the client did not send its clock.
    pub reports_delays: bool,
    /// The answers to a flow are together no longer than what arrived of it.
    pub answers_are_bounded: bool,
    /// Release the server names.
    pub version: Version,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            permit_key: None,
            may_connect_back: true,
            idle_timeout: Duration::from_secs(10),
            datagrams_before_sending: 2,
            udp_reverse: Some(UdpReverse::default()),
            reports_delays: false,
            answers_are_bounded: false,
            version: Version::V2_1_8,
        }
    }
}

/// Bounds of what a server sends over UDP. The protocol has no exchange that proves the address of
/// a flow, so the receiver may be a victim whose address was forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpReverse {
    /// Highest rate of one flow.
    pub rate_bps_max: u64,
    /// Longest time of one flow.
    pub time_max: Duration,
    /// A flow on which the client sends, too, ends after this time without a datagram; `None` for
    /// no such bound.
    pub silence_max: Option<Duration>,
}

impl Default for UdpReverse {
    fn default() -> Self {
        Self {
            rate_bps_max: 10_000_000_000,
            time_max: Duration::from_secs(3600),
            silence_max: None,
        }
    }
}

/// Checks whether this start time of a client implies that both clocks agree.
fn clocks_agree(start: Option<Timestamp>, now: Timestamp) -> bool {
    start.is_some_and(|start| {
        u128::from(now.ns_since(start).unsigned_abs()) <= CLOCK_SKEW_MAX.as_nanos()
    })
}

fn closed(message: &str) -> Failure {
    Failure::new(FailureKind::PeerClosed, message)
}

fn terminated() -> Failure {
    Failure::new(FailureKind::Interrupted, "the server is shutting down")
}

/// A test a client requested.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedTest {
    /// Header of the connection.
    pub opening: Opening,
    /// The client's header, if any.
    pub header: Option<Header>,
    /// Bytes that arrived before the data and count as payload.
    pub payload_bytes: usize,
    /// The test, as far as this connection or flow is concerned.
    pub spec: TestSpec,
    /// The client wanted one-way delays, but its clock is too far away.
    pub clocks_disagree: bool,
}

impl AcceptedTest {
    /// Who sends.
    pub fn mode(&self) -> crate::wire::header::Mode {
        self.header
            .as_ref()
            .map_or_else(Default::default, |header| header.mode)
    }
}

impl Policy {
    /// Compares without telling by its duration how much of the key was right. A key that this
    /// server has not is wrong.
    fn permits(&self, key: Option<&[u8]>) -> bool {
        match (&self.permit_key, key) {
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
            (Some(expected), Some(key)) => {
                let differences = expected
                    .iter()
                    .zip(key)
                    .fold(0, |sum, (a, b)| sum | (a ^ b));
                expected.len() == key.len() && differences == 0
            }
        }
    }
}
