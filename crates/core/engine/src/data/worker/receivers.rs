//! Pumps of receivers.

pub(super) mod datagram_receiver;
pub(super) mod read_place;
pub(super) mod stream_receiver;
