//! Which way a body takes into the socket.

use std::os::fd::OwnedFd;

use linerate_sys::sockopt;

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyPath {
    /// The kernel copies it (send(2)).
    Copy,
    /// From a file (sendfile(2)), in one segment with its header.
    Sendfile,
    /// From a file, behind a header in a segment of its own.
    SendfileApart,
}

impl BodyPath {
    /// The way of a body of this size on a connection that is paced or not; see [`is_paced`].
    pub(crate) fn of(body_bytes: u64, is_paced: bool) -> Self {
        match body_bytes {
            ..COPIED_BELOW_BYTES => Self::Copy,
            SEGMENT_BYTES.. if is_paced => Self::SendfileApart,
            _ => Self::Sendfile,
        }
    }
}

/// Whether the kernel paces with a timer what this connection sends in large segments, as over loopback: all versions of
/// `bbr` want that. A response of several segments then waits for the timer between them, and its interrupts cost more
/// than the sending. A header in a segment of its own shows the algorithm how fast the path is, so that nothing waits. It
/// costs a segment, which is more than it saves where segments are small.
pub(crate) fn is_paced(connection: &OwnedFd) -> bool {
    sockopt::get_mss(connection).is_ok_and(|mss_bytes| mss_bytes >= LARGE_MSS_BYTES)
        && sockopt::congestion(connection).is_ok_and(|algorithm| algorithm.starts_with("bbr"))
}

/// From this size on copying costs more than sending from a file, on every machine that was measured.
const COPIED_BELOW_BYTES: u64 = 32 * 1024;
/// Larger than any network's but that of loopback, which carries 64 KiB.
const LARGE_MSS_BYTES: u32 = 16 * 1024;
/// What one segment takes on its way through the kernel (`GSO_LEGACY_MAX_SIZE`), less room for a header.
const SEGMENT_BYTES: u64 = 63 * 1024;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn large_bodies_come_from_a_file_and_on_paced_connections_apart_from_their_header() {
        for (body_bytes, on_others, on_paced) in [
            (0, BodyPath::Copy, BodyPath::Copy),
            (COPIED_BELOW_BYTES - 1, BodyPath::Copy, BodyPath::Copy),
            (COPIED_BELOW_BYTES, BodyPath::Sendfile, BodyPath::Sendfile),
            (SEGMENT_BYTES, BodyPath::Sendfile, BodyPath::SendfileApart),
            (u64::MAX, BodyPath::Sendfile, BodyPath::SendfileApart),
        ] {
            assert_eq!(BodyPath::of(body_bytes, false), on_others, "{body_bytes}");
            assert_eq!(BodyPath::of(body_bytes, true), on_paced, "{body_bytes}");
        }
    }

    #[test]
    fn pacing_is_that_of_the_connection_and_not_the_default_of_the_host() {
        for (algorithm, is_so) in [("bbr", true), ("reno", false)] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            if sockopt::set_congestion(&listener, algorithm).is_err() {
                // Not every kernel has it, and some allow it to root alone.
                assert_eq!(algorithm, "bbr");
                continue;
            }
            let _client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            let (accepted, _) = listener.accept().expect("a client");
            assert_eq!(is_paced(&OwnedFd::from(accepted)), is_so, "{algorithm}");
        }
    }
}
