//! Plan of the probes of a phase, and their results.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use linerate_model::path::{ConcurrentProbes, ProbeSample};
use linerate_model::spec::BindSpec;
use linerate_native::wire::datagram::FlowId;
use linerate_sys::socket::{self, Protocol};
use linerate_sys::sockopt;
use linerate_trust::ClientConfig;

use crate::dialect::native::client::bind;
use crate::dialect::native::client::flow::ReserveFlow;

/// Remote and local end of new connections.
pub(crate) struct ProbeTarget {
    pub remote: SocketAddr,
    pub bind: BindSpec,
    pub dscp: u8,
}

impl ProbeTarget {
    /// A socket that is not connected yet.
    pub(crate) fn socket(&self, protocol: Protocol) -> io::Result<OwnedFd> {
        let fd = socket::open(&self.remote, protocol)?;
        bind(&fd, &self.bind, &self.remote)?;
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        if self.dscp != 0 {
            let _ = sockopt::set_tos(&fd, self.dscp << 2);
        }

        Ok(fd)
    }

    /// Begins to connect. The connection is reset when it is closed, so that it leaves no port
    /// behind in TIME_WAIT.
    pub(crate) fn connect(&self) -> io::Result<OwnedFd> {
        let fd = self.socket(Protocol::Tcp)?;
        let _ = sockopt::set_reset_on_close(&fd);
        socket::connect(&fd, &self.remote)?;
        Ok(fd)
    }
}

/// A round trip without times of the peer; one that is not complete is lost.
pub(crate) fn sample(sent_ns: u64, received_ns: Option<u64>) -> ProbeSample {
    ProbeSample {
        sent_ns,
        peer_received_ns: None,
        peer_sent_ns: None,
        received_ns,
    }
}

/// Subjects of probes, and the period.
pub(crate) struct ProbePlan {
    pub flows: Vec<FlowPlan>,
    /// Between two probes of a flow, ns.
    pub period_ns: u64,
    pub connections: Option<ConnectionPlan>,
}

/// A flow that the server has opened.
pub(crate) struct FlowPlan {
    pub fd: OwnedFd,
    pub id: FlowId,
    pub dscp: u8,
    pub spare: Option<ReserveFlow>,
}

/// New connections, one token each.
pub(crate) struct ConnectionPlan {
    pub target: ProbeTarget,
    pub tokens: Vec<[u8; 16]>,
    pub period_ns: u64,
    pub tls: ClientConfig,
}

/// Round trips so far.
#[derive(Default)]
pub(crate) struct ProbeResults {
    /// DSCP and samples of each flow.
    pub udp: Vec<(u8, Vec<ProbeSample>)>,
    /// TOS of probes: as sent, as arrived at the server, of each flow.
    pub tos_up: Vec<(u8, u8)>,
    /// TOS of replies: as sent by the server, as arrived here.
    pub tos_down: Vec<(u8, u8)>,
    pub connections: ConcurrentProbes,
    /// Round trip of the first flow.
    pub newest_rtt_ns: Option<i64>,
    /// New connections that the server closed before it answered.
    pub refused: u64,
    /// Flows that a spare one has taken the place of.
    pub replaced: u32,
}
