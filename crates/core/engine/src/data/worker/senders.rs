//! Pumps of senders, and their rates.

pub(super) mod datagram_sender;
pub(super) mod frame_payload;
pub(super) mod pace;
pub(super) mod repeated_block;
pub(super) mod stream_sender;
