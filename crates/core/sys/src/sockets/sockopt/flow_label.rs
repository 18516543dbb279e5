//! IPv6 flow labels (RFC 6437; ipv6(7), `include/uapi/linux/in6.h`).

use std::io;
use std::net::SocketAddrV6;
use std::os::fd::AsFd;

use crate::error::{During, Result};
use crate::option::{SocketOption, option};

/// Leases a flow label for packets to `remote` and makes the socket send it (`IPV6_FLOWLABEL_MGR`,
/// `IPV6_FLOWINFO_SEND`). `label` is 1..=0xfffff. The address to connect to must then carry the
/// label too: see [`with_flow_label`].
///
/// # Errors
/// `EINVAL` for a label out of range; else the operating system's, `EPERM` when another process
/// holds the label for itself.
pub fn lease_flow_label(fd: impl AsFd, remote: &SocketAddrV6, label: u32) -> Result<()> {
    // The kernel would choose a label by itself for 0, and ignore the bits above the twentieth.
    if label == 0 || label > LABEL_MASK {
        return Err(io::Error::from_raw_os_error(libc::EINVAL)).during(MANAGER.set, label);
    }

    MANAGER.set_bytes(&fd, &request(remote, label), label)?;
    FLOWINFO_SEND.set(fd, true)
}

/// The address with the label in its flow information, in network byte order as `sin6_flowinfo`
/// wants it.
pub fn with_flow_label(mut remote: SocketAddrV6, label: u32) -> SocketAddrV6 {
    remote.set_flowinfo((label & LABEL_MASK).to_be());
    remote
}

/// `struct in6_flowlabel_req`: destination 16, label 4 (big-endian), action 1, share 1, flags 2,
/// expiry 2, linger 2, padding 4. Expiry and linger of 0 mean the kernel's defaults.
fn request(remote: &SocketAddrV6, label: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&remote.ip().octets());
    bytes[16..20].copy_from_slice(&label.to_be_bytes());
    bytes[20] = ACTION_GET;
    bytes[21] = SHARE_ANY;
    bytes[22..24].copy_from_slice(&FLAG_CREATE.to_ne_bytes());
    bytes
}

/// A flow label has 20 bits.
const LABEL_MASK: u32 = 0x000f_ffff;
/// `IPV6_FL_A_GET`.
const ACTION_GET: u8 = 0;
/// `IPV6_FL_S_ANY`: several tests may use one label.
const SHARE_ANY: u8 = 255;
/// `IPV6_FL_F_CREATE`.
const FLAG_CREATE: u16 = 1;

const MANAGER: SocketOption = option!(IPPROTO_IPV6, IPV6_FLOWLABEL_MGR);
const FLOWINFO_SEND: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_FLOWINFO_SEND);
