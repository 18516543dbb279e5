//! Options of UDP sockets (udp(7)).

use std::os::fd::AsFd;

use crate::error::Result;
use crate::option::{SocketOption, option};

/// Cuts every write into datagrams of `bytes` (`UDP_SEGMENT`, Linux 4.18); 0 switches it off. For single writes see
/// [`crate::udp::send_segmented`].
///
/// # Errors
/// The operating system's.
pub fn set_udp_segment(fd: impl AsFd, bytes: u16) -> Result<()> {
    SEGMENT.set_int(fd, bytes.into())
}

/// Size of the datagrams a write is cut into, 0 when it is not (`UDP_SEGMENT`).
///
/// # Errors
/// The operating system's.
pub fn get_udp_segment(fd: impl AsFd) -> Result<u32> {
    SEGMENT.get_u32(fd)
}

/// Receives trains of equal datagrams as one buffer (`UDP_GRO`, Linux 5.0); [`crate::udp::RecvBatch`] returns the size
/// of one.
///
/// # Errors
/// The operating system's.
pub fn set_udp_gro(fd: impl AsFd, on: bool) -> Result<()> {
    GRO.set_bool(fd, on)
}

const SEGMENT: SocketOption = option!(IPPROTO_UDP, UDP_SEGMENT, crate::udp::UDP_SEGMENT);
const GRO: SocketOption = option!(IPPROTO_UDP, UDP_GRO, crate::udp::UDP_GRO);
