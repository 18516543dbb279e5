//! Requests to the kernel over netlink: one response, or a dump of many.

use linerate_sys::netlink::{ANSWER_BYTES_MAX, Family, Netlink};

use crate::error::ReadError;
use crate::netlink as nl;

/// A netlink socket that numbers its requests.
#[derive(Debug)]
pub(crate) struct NetlinkClient {
    socket: Netlink,
    sequence: u32,
    buffer: Vec<u8>,
}

impl NetlinkClient {
    /// # Errors
    /// The kernel's, where it lacks the protocol.
    pub(crate) fn open(family: Family) -> Result<Self, ReadError> {
        Ok(Self {
            socket: Netlink::open(family)?,
            sequence: 0,
            buffer: vec![0; ANSWER_BYTES_MAX],
        })
    }

    /// Number of a family of generic netlink, which the kernel assigns at run time (genl_ctrl).
    pub(crate) fn generic_family(&mut self, name: &str) -> Option<u16> {
        const CONTROLLER: u16 = 0x10;
        const GET_FAMILY: u8 = 3;

        // `struct genlmsghdr`: command, version, two reserved bytes.
        let mut body = vec![GET_FAMILY, 1, 0, 0];
        nl::push(&mut body, 2, format!("{name}\0").as_bytes());
        let response = self.get(CONTROLLER, &body).ok()?;
        nl::u16_of(response.get(4..)?, 1)
    }

    /// The payload of the one response to a request.
    ///
    /// # Errors
    /// The kernel's; [`ReadError::Missing`] for an acknowledgement without a response.
    pub(crate) fn get(&mut self, kind: u16, body: &[u8]) -> Result<Vec<u8>, ReadError> {
        let mut response = None;
        self.exchange(kind, 0, body, |payload| {
            response = Some(payload.to_vec());
            false
        })?;
        response.ok_or_else(|| ReadError::missing("the kernel sent no response"))
    }

    /// Passes the payload of every response to a dump on.
    ///
    /// # Errors
    /// The kernel's; responses that came before it were passed on.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), ReadError> {
        self.exchange(kind, nl::DUMP, body, |payload| {
            each(payload);
            true
        })
    }

    /// `each` returns whether more responses are expected.
    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), ReadError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket
            .send(&nl::request(kind, flags, self.sequence, body))?;

        loop {
            let datagram = self.socket.receive(&mut self.buffer)?;
            for message in
                // Messages of an earlier request that was given up may still be in the queue.
                nl::messages(datagram).filter(|message| message.sequence == self.sequence)
            {
                match message.kind {
                    nl::DONE | nl::ERROR => return ended(message.payload),
                    _ if each(message.payload) => {}
                    _ => return Ok(()),
                }
            }
        }
    }
}

fn ended(payload: &[u8]) -> Result<(), ReadError> {
    match nl::errno(payload) {
        0 => Ok(()),
        errno => Err(ReadError::refused("netlink", errno)),
    }
}

/// Responses that are kept; a count of queues, filters or rules beyond this has no use.
const RESPONSES_MAX: usize = 20_000;

/// All objects of a kind, and why the dump ended early if it did.
pub(crate) fn dump(family: Family, kind: u16, body: &[u8]) -> (Vec<Vec<u8>>, Option<ReadError>) {
    let mut responses = Vec::new();
    let keep = |payload: &[u8]| {
        if responses.len() < RESPONSES_MAX {
            responses.push(payload.to_vec());
        }
    };
    let ended = NetlinkClient::open(family).and_then(|mut client| client.dump(kind, body, keep));

    (responses, ended.err())
}
