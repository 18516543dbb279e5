//! UDP datagrams that reached a host and were dropped because the receive buffer was full.

use std::os::fd::BorrowedFd;

use linerate_sys::sockopt;

/// Times the receive buffers of these sockets overflowed; `None` when the kernel does not report
/// it, or there are none.
pub(crate) fn count<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Option<u64> {
    sockets
        .map(|fd| {
            sockopt::receive_memory(fd)
                .ok()
                .map(|memory| u64::from(memory.dropped_messages))
        })
        .reduce(|sum, next| Some(sum? + next?))
        .flatten()
}

/// Remark for the user: the network is not to blame for this loss.
pub(crate) fn warning(host: &str, overflows: Option<u64>) -> Option<String> {
    let overflows = overflows.filter(|n| *n > 0)?;
    Some(format!(
        "lost datagrams reached {host} and were dropped there, because the receive buffer was full \
         {overflows} times; each time the kernel drops one datagram or several that it has joined. \
         This loss is not the network's"
    ))
}
