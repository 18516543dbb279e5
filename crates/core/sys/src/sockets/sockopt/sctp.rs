//! Options of SCTP sockets (RFC 6458, `include/uapi/linux/sctp.h`). Without the kernel module no
//! SCTP socket opens, so these cannot fail for its absence.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::SockAddr;

use crate::error::Result;
use crate::option::{SocketOption, option};

/// Sends small messages at once.
pub const SCTP_NODELAY: SocketOption<bool> = option!(IPPROTO_SCTP, SCTP_NODELAY, 3);

/// Requests this many streams per association, out and in (`SCTP_INITMSG`); before the connection.
///
/// # Errors
/// The operating system's.
pub fn set_sctp_init_streams(fd: impl AsFd, streams: u16) -> Result<()> {
    // struct sctp_initmsg: streams out, streams in, attempts, timeout; 0 leaves a default.
    let mut message = [0; 8];
    message[..2].copy_from_slice(&streams.to_ne_bytes());
    message[2..4].copy_from_slice(&streams.to_ne_bytes());

    let option: SocketOption = option!(IPPROTO_SCTP, SCTP_INITMSG, 2);
    option.set_bytes(fd, &message, streams)
}

/// Adds local addresses to a multi-homed endpoint (`sctp_bindx(3)`, without its library).
///
/// # Errors
/// The operating system's.
pub fn sctp_bindx(fd: impl AsFd, addresses: &[SocketAddr]) -> Result<()> {
    let shown = addresses
        .iter()
        .map(SocketAddr::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let option: SocketOption = option!(IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, 100);
    option.set_bytes(fd, &packed(addresses), shown)
}

/// The addresses one behind the other, each as long as its family.
fn packed(addresses: &[SocketAddr]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for address in addresses {
        let address = SockAddr::from(*address);
        let len = usize::try_from(address.len()).unwrap_or_default();
        // SAFETY: SockAddr guarantees that its first `len` bytes are initialised; it outlives the
        // slice.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), len)
        });
    }

    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_packed_without_gaps() {
        let packed = packed(&[
            "192.0.2.1:5201".parse().unwrap(),
            "[2001:db8::1]:5201".parse().unwrap(),
        ]);
        assert_eq!(packed.len(), 16 + 28);
        assert_eq!(packed[..2], (libc::AF_INET as u16).to_ne_bytes());
        assert_eq!(packed[2..8], [0x14, 0x51, 192, 0, 2, 1]);
        assert_eq!(packed[16..18], (libc::AF_INET6 as u16).to_ne_bytes());
        assert_eq!(
            packed[16 + 8..16 + 24],
            [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        );
    }
}
