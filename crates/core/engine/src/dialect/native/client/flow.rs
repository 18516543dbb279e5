//! Opens a UDP flow: a datagram with a token, until the server answers it.
//!
//! A router on the path that loses its state or changes it (RFC 4787) maps the packets of a flow to
//! another port, from which the server expects none. [`ReserveFlow`] is a flow that takes the place
//! of such a one.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use linerate_model::spec::BindSpec;
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FLOW_OPEN_LEN_MIN, FlowId, FlowOpen, HEAD_LEN,
};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, udp};

use super::bind;
use crate::error::{EngineError, Operation};

/// A flow that the server granted.
#[derive(Clone, Copy)]
pub(super) struct Granted {
    pub id: FlowId,
    pub token: [u8; 16],
}

/// A flow that is opened when the first one returns no replies any more.
pub(super) struct ReserveFlow {
    pub remote: SocketAddr,
    pub from: BindSpec,
    /// Exactly this local end, if it is free.
    pub local: Option<SocketAddr>,
    pub granted: Granted,
}

/// A flow whose request may be answered at any time.
pub(super) struct Opening {
    pub fd: OwnedFd,
    pub granted: Granted,
    requests_left: u32,
    pub next_ns: u64,
}

/// Requests that stay unanswered before UDP counts as blocked.
const REQUESTS: u32 = 3;
/// Between two of them.
const REQUEST_PERIOD: Duration = Duration::from_millis(333);

impl ReserveFlow {
    /// Begins to open it.
    ///
    /// # Errors
    /// When this host has no socket for it.
    pub(super) fn open(self, now_ns: u64) -> Result<Opening, EngineError> {
        let fail = Operation::InitStream.failed();
        let fd = socket::open(&self.remote, Protocol::Udp).map_err(&fail)?;
        let is_bound = self
            .local
            .is_some_and(|local| socket::bind(&fd, &local).is_ok());
        let from = match is_bound {
            // The device remains to be set.
            true => BindSpec {
                host: None,
                ..self.from
            },
            false => self.from,
        };
        bind(&fd, &from, &self.remote).map_err(&fail)?;
        socket::connect(&fd, &self.remote).map_err(&fail)?;
        Ok(Opening {
            fd,
            granted: self.granted,
            requests_left: REQUESTS,
            next_ns: now_ns,
        })
    }
}

impl Opening {
    pub(super) fn is_awaited(&self) -> bool {
        self.requests_left > 0 || clock::monotonic_ns() < self.next_ns
    }

    /// Sends a request when it is time, and answers a challenge; true once the flow is open.
    pub(super) fn advance(&mut self, now_ns: u64) -> bool {
        if now_ns >= self.next_ns && self.requests_left > 0 {
            self.requests_left -= 1;
            self.next_ns = now_ns.saturating_add(clock::as_ns(REQUEST_PERIOD));
            self.request(0);
        }

        let mut buffer = [0; 2 * FLOW_OPEN_LEN_MIN];
        // A refused port is an error of this call.
        let len = udp::recv(&self.fd, &mut buffer).unwrap_or(0);
        let head = DatagramHead::decode(buffer.get(..len).unwrap_or_default())
            .filter(|head| head.id() == self.granted.id);
        match head.map(|head| (head.datagram_type, head.stamp)) {
            Some((DatagramType::Open, _)) => return true,
            Some((DatagramType::Challenge, proof)) => self.request(proof),
            _ => {}
        }

        false
    }

    /// Requests the flow; `proof` is that of a challenge, or 0.
    fn request(&self, proof: u64) {
        let mut datagram = [0; FLOW_OPEN_LEN_MIN];
        let Granted { id, token } = self.granted;
        FlowId { tag: proof, ..id }
            .head(DatagramType::FlowOpen, 0, clock::monotonic_ns())
            .encode_into(&mut datagram);
        FlowOpen { token }.encode_into(&mut datagram);

        // What cannot be sent is not answered.
        let _ = udp::send(&self.fd, &datagram);
    }
}

/// Ends a flow. A datagram that is lost leaves it to the end of the session.
pub(super) fn close(fd: &OwnedFd, id: FlowId) {
    let mut datagram = [0; HEAD_LEN];
    id.head(DatagramType::Bye, 0, clock::monotonic_ns())
        .encode_into(&mut datagram);
    let _ = udp::send(fd, &datagram);
}
