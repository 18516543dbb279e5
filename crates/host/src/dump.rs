//! Netlink dumps: requests with many responses.

use linerate_sys::netlink::{Family, Netlink};

use crate::netlink::{self as nl, u32_at};

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    /// Payloads of the responses that arrived before an error.
    pub(crate) responses: Vec<Vec<u8>>,
    /// The kernel's error number, if it refused or fell silent.
    pub(crate) errno: Option<i32>,
}

/// Responses that are kept; a count of queues, filters or rules beyond this has no use.
const RESPONSES_MAX: usize = 20_000;

/// Asks for all objects of a kind.
pub(crate) fn dump(family: Family, kind: u16, body: &[u8]) -> Dump {
    let mut dump = Dump::default();
    let mut socket = match Netlink::open(family) {
        Ok(socket) => socket,
        Err(error) => {
            dump.errno = error.errno();
            return dump;
        }
    };
    if let Err(error) = socket.send(&nl::request(kind, nl::DUMP, 1, body)) {
        dump.errno = error.errno();
        return dump;
    }
    while dump.responses.len() < RESPONSES_MAX {
        let datagram = match socket.receive() {
            Ok(datagram) => datagram,
            Err(error) => {
                dump.errno = error.errno();
                return dump;
            }
        };
        for message in nl::messages(&datagram) {
            match message.kind {
                nl::DONE | nl::ERROR => {
                    let failed = u32_at(message.payload, 0).is_some_and(|code| code != 0);
                    dump.errno = failed.then(|| nl::errno(message.payload));
                    return dump;
                }
                _ => dump.responses.push(message.payload.to_vec()),
            }
        }
    }
    dump
}
