//! Hops of a path: what their routers answered to probes with a limited time to live.

use std::net::IpAddr;

use linerate_macros::{sparse, stored};

use super::PathDirection;

/// Answers from one distance, as one end received them during a phase.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct HopAnswers {
    /// Time to live of the probes: 1 is the next router.
    pub ttl: u8,
    /// Senders of the answers to the probes of the first flow, in the order in which they were
    /// seen, at most four. More than one means that the path changed.
    pub addresses: Vec<IpAddr>,
    /// Senders of the answers to probes of other flows, at most four: another one means that
    /// routers distribute flows over several paths.
    pub other_flows: Vec<IpAddr>,
    /// The other end itself answered.
    #[serde(default)]
    pub is_end: bool,
    /// Probes that were answered, or whose answer was awaited long enough.
    pub sent: u32,
    /// Round trip of each answer, ns, at most [`HopAnswers::ANSWERS_MAX`].
    pub rtt_ns: Vec<u64>,
    /// MPLS labels with which the probe reached the router (RFC 4950), outermost first.
    pub mpls_labels: Vec<u32>,
    /// TOS bytes of probes: as sent, and as the router quotes them. Empty without `CAP_NET_RAW`, at
    /// most four.
    pub tos: Vec<(u8, u8)>,
}

impl HopAnswers {
    /// Round trips that are kept of a hop and phase: two per second for four minutes.
    pub const ANSWERS_MAX: usize = 500;
}

/// A hop of the path, from one end.
#[sparse(Vec)]
#[stored(Default)]
pub struct Hop {
    /// Number of the hop: 1 is the next router.
    pub hop: u8,
    /// Sender of the answers; absent of a hop that did not answer.
    pub address: Option<IpAddr>,
    /// Its name in the DNS, where names are wanted.
    pub name: Option<String>,
    /// Senders of answers to the probes of other flows: the path has branches here.
    pub other_flows: Vec<IpAddr>,
    /// It is the other end.
    #[serde(default)]
    pub is_end: bool,
    /// Round trip without load.
    pub idle: Option<HopRtt>,
    /// Under load from the server to the client.
    pub down: Option<HopRtt>,
    /// Under load from the client to the server.
    pub up: Option<HopRtt>,
    /// Under load in both directions.
    pub both: Option<HopRtt>,
    /// Largest packet that the router forwards, in bytes with the IP header, where it reported one.
    pub mtu_bytes: Option<u32>,
    /// MPLS labels with which probes reached it, outermost first.
    pub mpls_labels: Vec<u32>,
    /// TOS bytes of probes: as sent, and as the router quotes them. Empty where the tracing end had
    /// no `CAP_NET_RAW`.
    pub tos: Vec<(u8, u8)>,
}

/// Round trips to a hop in one kind of phase.
#[stored(Copy, Eq)]
pub struct HopRtt {
    /// Probes sent; one whose answer was still awaited at the end is not counted.
    pub sent: u64,
    /// Answers. Routers limit their number, so that fewer answers than probes are no loss.
    pub answers: u64,
    /// Median in ns.
    pub p50_ns: u64,
    /// 90th percentile in ns.
    pub p90_ns: u64,
}

impl Hop {
    /// Round trip under the load of a direction.
    pub fn under(&self, load: PathDirection) -> Option<&HopRtt> {
        match load {
            PathDirection::Down => self.down.as_ref(),
            PathDirection::Up => self.up.as_ref(),
        }
    }

    /// What the load of a direction adds to the median round trip, ns; absent without both.
    pub fn added_ns(&self, load: PathDirection) -> Option<i64> {
        let [idle, loaded] = [self.idle.as_ref()?, self.under(load)?].map(|rtt| rtt.p50_ns);
        Some(i64::try_from(loaded).ok()? - i64::try_from(idle).ok()?)
    }
}

/// Place of a queue that a load fills. Hops are numbered from the client: 0 is the client itself,
/// and the last one is the server.
#[stored(Eq)]
pub struct HopQueue {
    /// Direction of the load.
    pub direction: PathDirection,
    /// First hop whose exit may have the queue.
    pub first_hop: u8,
    /// Last hop whose exit may have it; the same as the first where the place is known.
    pub last_hop: u8,
    /// What it adds to the median round trip, ns.
    pub added_ns: i64,
    /// Ends whose probes show it: `client`, `server`.
    pub seen_by: Vec<String>,
}

/// The hops of a path and what was found at them.
#[stored(Default)]
pub struct PathHops {
    /// As the client sees them; the last one is the server where that answered.
    #[serde(default, rename = "hops", skip_serializing_if = "Vec::is_empty")]
    pub from_client: Vec<Hop>,
    /// As the server sees them, numbered from the server.
    #[serde(
        default,
        rename = "hops_from_server",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub from_server: Vec<Hop>,
    /// Queues that the loads filled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<HopQueue>,
}

impl PathHops {
    /// Bits of the DSCP in a TOS byte (RFC 2474 section 3).
    pub const DSCP: u8 = 0b1111_1100;
    /// Bits of the ECN field (RFC 3168 section 5).
    pub const ECN: u8 = 0b11;
    const CE: u8 = 0b11;
    /// ECN-capable, as probes are.
    pub const ECT_0: u8 = 0b10;

    /// No end has an answer.
    pub fn is_empty(&self) -> bool {
        self.from_client.is_empty() && self.from_server.is_empty()
    }

    /// First hop from which on all quotes of probes in a direction have other bits of the TOS byte
    /// than `sent`. Probes that were sent with other bits do not count; hops without a quote are
    /// passed over.
    pub fn first_changed(&self, direction: PathDirection, bits: u8, sent: u8) -> Option<&Hop> {
        let hops = match direction {
            PathDirection::Up => &self.from_client,
            PathDirection::Down => &self.from_server,
        };
        let is_changed = |hop: &&Hop| {
            let mut of_mark = hop.tos.iter().filter(|(as_sent, _)| as_sent & bits == sent);
            let first = of_mark.next().map(|(_, quoted)| quoted & bits);
            // A router may set CE on a capable packet (RFC 3168 section 5).
            first.map(|quoted| quoted != sent && (bits, quoted) != (Self::ECN, Self::CE))
        };

        let known = hops.iter().filter(|hop| is_changed(hop).is_some());
        known
            .rev()
            .take_while(|hop| is_changed(hop) == Some(true))
            .last()
    }

    /// Hops from the client to the server, itself counted; `None` where the server did not answer.
    pub fn length(&self) -> Option<u8> {
        self.from_client
            .last()
            .filter(|hop| hop.is_end)
            .map(|hop| hop.hop)
    }
}
