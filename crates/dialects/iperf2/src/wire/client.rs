//! One connection or flow of a test seen from the client.
//!
//! A test with several streams is several of these: on the wire nothing but the same address groups
//! them. The caller creates them when all connections are open, so that they begin together.

mod flow;
mod stream;

pub use flow::{
    FIRST_DATAGRAM_WAIT, FIRST_DATAGRAMS_MAX, FlowClient, FlowClientSetup, LAST_DATAGRAMS_MAX,
    REPORT_WAIT,
};
pub(crate) use stream::failure;
pub use stream::{ACK_TIMEOUT, DRAIN_TIMEOUT, HEADER_TIMEOUT, StreamClient, StreamClientSetup};
