//! The iperf 2 protocol without I/O: stream headers, UDP datagrams, final reports, bounce-back and
//! burst framing.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. There is no control connection:
//! every TCP connection and every UDP flow is a session of its own, with one machine at each end
//! ([`client`], [`server`]). Machines are fed with bytes, local events and the current time, and
//! are polled for actions; everything else is a parser, an emitter or a table. Whatever comes from
//! the peer is bounded before it is stored and never leads to a panic.

pub mod ack;
pub mod amount;
pub mod bounceback;
pub mod burst;
pub mod client;
pub mod datagram;
pub mod frame;
pub mod header;
pub mod machine;
pub mod opening;
pub mod report;
pub mod sequence;
pub mod server;
pub mod settings;
pub mod stamp;
pub mod version;

pub use client::{FlowClient, StreamClient};
pub use datagram::DatagramHead;
pub use header::{Header, Mode};
pub use opening::{Opening, recognise};
pub use report::FinalReport;
pub use sequence::SequenceTracker;
pub use server::{FlowServer, Policy, StreamServer};
pub use stamp::Timestamp;
pub use version::Version;

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_be_bytes());
}

fn put_half(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_be_bytes());
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(target) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()))
    {
        target.copy_from_slice(value);
    }
}

/// Moves bytes from the front of `input` until `into` has `len` of them.
pub(crate) fn take(input: &mut &[u8], into: &mut Vec<u8>, len: usize) {
    let (taken, rest) = input.split_at(len.saturating_sub(into.len()).min(input.len()));
    into.extend_from_slice(taken);
    *input = rest;
}
