//! iperf3: a control connection per test, in [`client`] and [`server`].

pub mod client;
mod control_connection;
mod error;
mod keepalive;
pub mod server;
mod udp_headers;

use linerate_model::{Direction, Flow, StreamRole, TestSpec};

/// Role of an end on a stream, and direction of its data. The first half of the streams of a
/// bidirectional test carries the client's data, the second half the server's.
fn role_of(spec: &TestSpec, index: u32, is_client: bool) -> (StreamRole, Flow) {
    let is_forward = match spec.direction {
        Direction::Forward => true,
        Direction::Reverse => false,
        Direction::Bidirectional => index < spec.streams,
    };
    let role = if is_forward == is_client {
        StreamRole::Sender
    } else {
        StreamRole::Receiver
    };
    (
        role,
        if is_forward {
            Flow::Forward
        } else {
            Flow::Reverse
        },
    )
}
