//! Opens a UDP flow: a knock with a token, until the server answers it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::spec::BindSpec;
use linerate_native::datagram::{DatagramHead, DatagramType, HEAD_LEN, KNOCK_LEN_MIN, Knock};
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

/// Knocks that stay unanswered before UDP counts as blocked.
const KNOCKS: u32 = 3;
/// Between two of them.
const KNOCK_PERIOD: Duration = Duration::from_millis(333);

/// Opens a flow; `None` when no knock is answered.
///
/// # Errors
/// When this host has no socket for it.
pub(super) fn open(remote: SocketAddr, from: &BindSpec, granted: Granted) -> Result<Option<OwnedFd>, EngineError> {
    let fail = Operation::InitStream.failed();
    let fd = socket::open(&remote, Protocol::Udp).map_err(&fail)?;
    bind(fd.as_fd(), from, &remote).map_err(&fail)?;
    socket::connect(&fd, &remote).map_err(&fail)?;
    for _ in 0..KNOCKS {
        // What cannot be sent is not answered.
        let _ = udp::send(&fd, &knock(granted));
        if is_answered(&fd, granted) {
            return Ok(Some(fd));
        }
    }
    Ok(None)
}

/// Ends a flow. A datagram that is lost leaves it to the end of the session.
pub(super) fn close(fd: &OwnedFd, flow: u32, tag: u64) {
    let mut datagram = [0; HEAD_LEN];
    let stamp = clock::monotonic_ns();
    DatagramHead { datagram_type: DatagramType::Bye, flags: 0, flow, tag, sequence: 0, stamp }
        .encode_into(&mut datagram);
    let _ = udp::send(fd, &datagram);
}

fn knock(granted: Granted) -> [u8; KNOCK_LEN_MIN] {
    let mut datagram = [0; KNOCK_LEN_MIN];
    let head = DatagramHead {
        datagram_type: DatagramType::Knock,
        flags: 0,
        flow: granted.flow,
        tag: 0,
        sequence: 0,
        stamp: clock::monotonic_ns(),
    };
    head.encode_into(&mut datagram);
    Knock { token: granted.token }.encode_into(&mut datagram);
    datagram
}

fn is_answered(fd: &OwnedFd, granted: Granted) -> bool {
    let end = Instant::now() + KNOCK_PERIOD;
    let mut buffer = [0; 2 * KNOCK_LEN_MIN];
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
        let head = DatagramHead::decode(buffer.get(..len).unwrap_or_default());
        if head.is_some_and(|head| {
            (head.datagram_type, head.flow, head.tag) == (DatagramType::Open, granted.flow, granted.tag)
        }) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}
