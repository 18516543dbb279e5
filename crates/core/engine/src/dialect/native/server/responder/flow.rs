//! A UDP flow of probes.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FLAG_INTERFACE, FLAG_SIZE_REQUEST, FLAG_TOO_LARGE, FlowId,
    HEAD_LEN, ReceivedSequence, ReplyBody, SizeAnswer, TOS_UNKNOWN,
};
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::udp::{self, Message};
use linerate_sys::{errno, sockopt};

use super::meter::{Meter, Room};
use crate::data::quota::Traffic;
use crate::server::limits::allotment::Allotted;

/// Answers the probes of one flow on its connected socket.
pub(super) struct ProbeFlow {
    fd: OwnedFd,
    id: FlowId,
    received: ReceivedSequence,
    offset: RealtimeOffset,
    /// Large datagrams that may still be sent to the client.
    size_probes_left: u32,
    /// The last of them, and its type of service, until a router reports that it is too large.
    size_probe: Option<(DatagramHead, u8)>,
    buffer: Vec<u8>,
    /// Bytes that were sent since the last charge.
    sent_bytes: u64,
    /// Closed with the flow.
    _allotted: Allotted,
}

/// Result of one call of [`ProbeFlow::answer`].
#[derive(Debug, Default)]
pub(super) struct FlowRead {
    pub probes: u64,
    /// A limit of the server leaves no room before this monotonic time, ns.
    pub not_before_ns: Option<u64>,
    pub has_ended: bool,
}

/// Limit of datagrams per call, for fairness to the other flows.
const DATAGRAMS_PER_CALL: u32 = 64;
/// Datagrams that a flow may request, and their largest UDP payload.
const SIZE_PROBES_MAX: u32 = 120;
const SIZE_PROBE_BYTES_MAX: usize = 9_216;

impl ProbeFlow {
    pub(super) fn new(fd: OwnedFd, id: FlowId, allotted: Allotted) -> Self {
        // Without these a time is that of the read, and marks are unknown.
        let _ = sockopt::SO_TIMESTAMPNS.set(&fd, true);
        let _ = sockopt::set_receive_tos(&fd, true);
        let _ = sockopt::set_receive_ttl(&fd, true);
        // Answers to size probes leave with DF set and without the cached path MTU (ip(7),
        // `IP_PMTUDISC_PROBE`).
        let _ = sockopt::set_path_mtu_probe(&fd);
        let _ = sockopt::set_receive_errors(&fd, true);
        let buffer = vec![0; SIZE_PROBE_BYTES_MAX + 1];
        let received = ReceivedSequence::default();
        let offset = RealtimeOffset::read();
        let size_probes_left = SIZE_PROBES_MAX;

        Self {
            fd,
            id,
            received,
            offset,
            size_probes_left,
            size_probe: None,
            buffer,
            sent_bytes: 0,
            _allotted: allotted,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Answers what has arrived, as far as the limits of the server allow.
    pub(super) fn answer(&mut self, meter: &Meter) -> FlowRead {
        let mut read = FlowRead::default();
        let mut buffer = std::mem::take(&mut self.buffer);
        self.offset.refresh();

        for count in 0..DATAGRAMS_PER_CALL {
            match meter.room(Traffic::Probes) {
                Ok(Room::Bytes(_)) => {}
                Ok(Room::NotBefore(at_ns)) => {
                    read.not_before_ns = Some(at_ns);
                    break;
                }
                Err(_) => read.has_ended = true,
            }

            if read.has_ended {
                break;
            }

            match udp::recv_message(&self.fd, &mut buffer) {
                Ok(message) => {
                    self.answer_one(&message, &mut read);
                    // With the size on the wire (`full_len`), although the buffer may have cut it:
                    // the limit is on traffic.
                    meter.charge(
                        Traffic::Probes,
                        message.full_len as u64,
                        std::mem::take(&mut self.sent_bytes),
                    );
                }
                // The socket was ready for errors alone.
                Err(error) if error.kind() == ErrorKind::WouldBlock && count == 0 => {
                    self.take_errors();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.take_errors(),
            }
        }

        self.buffer = buffer;
        read
    }

    /// Errors of earlier sends. As long as one is queued the socket stays ready. The client learns
    /// of a size that a router reports; other errors it notices by itself.
    fn take_errors(&mut self) {
        while let Ok(error) = udp::take_error(&self.fd, &mut [0; 64]) {
            if let Some(bytes) = error.mtu_bytes()
                && let Some((head, tos)) = self.size_probe.take()
            {
                let answer = SizeAnswer {
                    bytes,
                    tos,
                    reported_by: error.offender,
                };
                self.answer_size(&head, FLAG_TOO_LARGE, answer);
            }
        }
    }

    fn answer_one(&mut self, message: &Message<'_>, read: &mut FlowRead) {
        let received_ns = message.arrival_ns(self.offset, clock::monotonic_ns());
        let known = DatagramHead::decode(message.data).filter(|head| head.flow == self.id.flow);
        let Some(head) = known
            .filter(|head| head.tag == self.id.tag || head.datagram_type == DatagramType::FlowOpen)
        else {
            return;
        };
        match head.datagram_type {
            DatagramType::Probe => {
                let before = self.received.distinct();
                self.received.on_datagram(head.sequence);
                read.probes += self.received.distinct() - before;
                self.reply(message, &head, received_ns);
            }
            DatagramType::SizeProbe if head.flags & FLAG_SIZE_REQUEST != 0 => {
                self.send_size_probe(message, &head);
            }
            DatagramType::SizeProbe => self.confirm_size(message, &head),
            // Its answer was lost.
            DatagramType::FlowOpen => {
                self.send(
                    &DatagramHead {
                        datagram_type: DatagramType::Open,
                        tag: self.id.tag,
                        ..head
                    },
                    &[],
                );
            }
            DatagramType::Bye => read.has_ended = true,
            _ => {}
        }
    }

    /// A reply is as long as its probe.
    fn reply(&mut self, message: &Message<'_>, head: &DatagramHead, received_ns: u64) {
        let mut reply = message.data.to_vec();
        DatagramHead {
            datagram_type: DatagramType::Reply,
            flags: 0,
            ..*head
        }
        .encode_into(&mut reply);

        let body = ReplyBody {
            received_ns,
            sent_ns: clock::monotonic_ns().max(received_ns),
            received_count: self.received.distinct(),
            tos: message.tos.unwrap_or(TOS_UNKNOWN),
            ttl: message.ttl.unwrap_or(0),
        };
        body.encode_into(&mut reply);
        let tos = message.tos.unwrap_or(0);

        // A reply that cannot be sent is a lost one.
        let _ = self.transmit(&reply, Some(tos));
    }

    fn confirm_size(&mut self, message: &Message<'_>, head: &DatagramHead) {
        let bytes = u32::try_from(message.full_len).unwrap_or(u32::MAX);
        self.answer_size(
            head,
            0,
            SizeAnswer {
                bytes,
                tos: message.tos.unwrap_or(TOS_UNKNOWN),
                reported_by: None,
            },
        );
    }

    /// Sends a datagram of the size and type of service that the client requests, as often as that
    /// is allowed.
    fn send_size_probe(&mut self, message: &Message<'_>, head: &DatagramHead) {
        let Some(wanted) = SizeAnswer::decode(message.data) else {
            return;
        };
        let len = (wanted.bytes as usize).clamp(HEAD_LEN, SIZE_PROBE_BYTES_MAX);
        if self.size_probes_left == 0 {
            return;
        }

        self.size_probes_left -= 1;
        let mut datagram = vec![0; len];
        DatagramHead { flags: 0, ..*head }.encode_into(&mut datagram);

        let sent = self.transmit(&datagram, Some(wanted.tos));
        self.size_probe = sent.is_ok().then_some((*head, wanted.tos));

        if sent.is_err_and(|error| error.raw_os_error() == Some(errno::EMSGSIZE)) {
            let bytes = sockopt::path_mtu(&self.fd).unwrap_or(0);
            self.answer_size(
                head,
                FLAG_TOO_LARGE | FLAG_INTERFACE,
                SizeAnswer {
                    bytes,
                    tos: wanted.tos,
                    reported_by: None,
                },
            );
        }
    }

    fn answer_size(&mut self, head: &DatagramHead, flags: u8, answer: SizeAnswer) {
        let mut body = [0; HEAD_LEN + SizeAnswer::LEN_MAX];
        answer.encode_into(&mut body);
        let body = body.get(HEAD_LEN..).unwrap_or_default();

        self.send(
            &DatagramHead {
                datagram_type: DatagramType::SizeAnswer,
                flags,
                ..*head
            },
            body,
        );
    }

    fn send(&mut self, head: &DatagramHead, body: &[u8]) {
        let mut datagram = vec![0; HEAD_LEN];
        head.encode_into(&mut datagram);
        datagram.extend_from_slice(body);
        let _ = self.transmit(&datagram, None);
    }

    fn transmit(&mut self, datagram: &[u8], tos: Option<u8>) -> io::Result<usize> {
        let sent = match tos {
            Some(tos) => udp::send_with_tos(&self.fd, datagram, tos),
            None => udp::send(&self.fd, datagram),
        }?;
        self.sent_bytes += sent as u64;
        Ok(sent)
    }
}
