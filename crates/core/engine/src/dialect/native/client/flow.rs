//! Opens a UDP flow: a knock with a token, until the server answers it.
//!
//! A router on the path that loses its state or changes it (RFC 4787) maps the packets of a flow to
//! another port, from which the server expects none. [`ReserveFlow`] is a flow that takes the place
//! of such a one.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::spec::BindSpec;
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FLOW_OPEN_LEN_MIN, FlowOpen, HEAD_LEN,
};
use linerate_sys::poll::{self, Interest};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{clock, udp};

use super::bind;
use crate::error::{EngineError, Operation};

/// A flow that the server granted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted {
    pub(super) flow: u32,
    pub(super) token: [u8; 16],
    pub(super) tag: u64,
}

/// A flow that is opened when the first one returns no replies any more.
pub(super) struct ReserveFlow {
    pub(super) remote: SocketAddr,
    pub(super) from: BindSpec,
    pub(super) granted: Granted,
}

/// A flow whose knock may be answered at any time.
pub(super) struct Opening {
    fd: OwnedFd,
    granted: Granted,
    knocks_left: u32,
    next_ns: u64,
}

/// Answer of the server to a flow-open datagram.
enum Answer {
    /// The flow is open.
    Open,
    /// The knock is to be repeated with this tag.
    Challenge(u64),
}

/// Knocks that stay unanswered before UDP counts as blocked.
const KNOCKS: u32 = 3;
/// Between two of them.
const KNOCK_PERIOD: Duration = Duration::from_millis(333);

/// Opens a flow; `None` when no knock is answered.
///
/// # Errors
/// When this host has no socket for it.
pub(super) fn open(
    remote: SocketAddr,
    from: &BindSpec,
    granted: Granted,
) -> Result<Option<OwnedFd>, EngineError> {
    let fd = connected(remote, from)?;
    for _ in 0..KNOCKS {
        // What cannot be sent is not answered.
        let _ = udp::send(&fd, &knock(granted, 0));
        if is_opened(&fd, granted) {
            return Ok(Some(fd));
        }
    }

    Ok(None)
}

fn connected(remote: SocketAddr, from: &BindSpec) -> Result<OwnedFd, EngineError> {
    let fail = Operation::InitStream.failed();
    let fd = socket::open(&remote, Protocol::Udp).map_err(&fail)?;
    bind(fd.as_fd(), from, &remote).map_err(&fail)?;
    socket::connect(&fd, &remote).map_err(&fail)?;
    Ok(fd)
}

impl ReserveFlow {
    /// Begins to open it; `None` when this host has no socket for it.
    pub(super) fn open(self, now_ns: u64) -> Option<Opening> {
        let fd = connected(self.remote, &self.from).ok()?;
        Some(Opening {
            fd,
            granted: self.granted,
            knocks_left: KNOCKS,
            next_ns: now_ns,
        })
    }
}

impl Opening {
    /// Knocks when it is time; true once the server has answered.
    pub(super) fn advance(&mut self, now_ns: u64) -> bool {
        if now_ns >= self.next_ns && self.knocks_left > 0 {
            self.knocks_left -= 1;
            self.next_ns = now_ns.saturating_add(clock::as_ns(KNOCK_PERIOD));
            // What cannot be sent is not answered.
            let _ = udp::send(&self.fd, &knock(self.granted, 0));
        }

        let mut buffer = [0; 2 * FLOW_OPEN_LEN_MIN];
        let Ok(len) = udp::recv(&self.fd, &mut buffer) else {
            return false;
        };
        is_open_after(
            &self.fd,
            buffer.get(..len).unwrap_or_default(),
            self.granted,
        )
    }

    /// The socket of the flow.
    pub(super) fn into_flow(self) -> (OwnedFd, Granted) {
        (self.fd, self.granted)
    }
}

/// The server's answer to a knock; `None` for any other datagram.
fn answer(datagram: &[u8], granted: Granted) -> Option<Answer> {
    let head = DatagramHead::decode(datagram)
        .filter(|head| (head.flow, head.tag) == (granted.flow, granted.tag))?;
    match head.datagram_type {
        DatagramType::Open => Some(Answer::Open),
        DatagramType::Challenge => Some(Answer::Challenge(head.stamp)),
        _ => None,
    }
}

/// True if a flow is open after this datagram of the server. A challenge is answered.
fn is_open_after(fd: &OwnedFd, datagram: &[u8], granted: Granted) -> bool {
    match answer(datagram, granted) {
        Some(Answer::Open) => return true,
        // What cannot be sent is not answered.
        Some(Answer::Challenge(proof)) => drop(udp::send(fd, &knock(granted, proof))),
        None => {}
    }
    false
}

/// Ends a flow. A datagram that is lost leaves it to the end of the session.
pub(super) fn close(fd: &OwnedFd, flow: u32, tag: u64) {
    let mut datagram = [0; HEAD_LEN];
    let stamp = clock::monotonic_ns();
    DatagramHead {
        datagram_type: DatagramType::Bye,
        flags: 0,
        flow,
        tag,
        sequence: 0,
        stamp,
    }
    .encode_into(&mut datagram);

    let _ = udp::send(fd, &datagram);
}

/// A knock; `proof` is that of a challenge, or 0.
fn knock(granted: Granted, proof: u64) -> [u8; FLOW_OPEN_LEN_MIN] {
    let mut datagram = [0; FLOW_OPEN_LEN_MIN];
    let head = DatagramHead {
        datagram_type: DatagramType::FlowOpen,
        flags: 0,
        flow: granted.flow,
        tag: proof,
        sequence: 0,
        stamp: clock::monotonic_ns(),
    };
    head.encode_into(&mut datagram);
    FlowOpen {
        token: granted.token,
    }
    .encode_into(&mut datagram);

    datagram
}

fn is_opened(fd: &OwnedFd, granted: Granted) -> bool {
    let end = Instant::now() + KNOCK_PERIOD;
    let mut buffer = [0; 2 * FLOW_OPEN_LEN_MIN];

    loop {
        let left = end.saturating_duration_since(Instant::now());
        match poll::wait_fd(fd, Interest::READ, Some(left)) {
            Ok(true) => {}
            _ => return false,
        }

        // A refused port is an error of this call.
        let Ok(len) = udp::recv(fd, &mut buffer) else {
            std::thread::sleep(left);
            return false;
        };
        if is_open_after(fd, buffer.get(..len).unwrap_or_default(), granted) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}
