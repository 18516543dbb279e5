//! Largest packets of each direction, and what becomes of their marks.
//!
//! Datagrams that may not be fragmented are sent with ascending sizes, three tries each, then
//! between the largest size that passes and the smallest that does not (RFC 8899 section 5.3). The
//! client sends those of its direction and requests those of the other one.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_model::path::{PathDirection, SizeResult, SizeSignal};
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FLAG_INTERFACE, FLAG_SIZE_REQUEST, FLAG_TOO_LARGE, FlowId,
    HEAD_LEN, SizeAnswer, TOS_UNKNOWN,
};
use linerate_sys::poll::Interest;
use linerate_sys::udp::{self, Message};
use linerate_sys::{clock, errno, sockopt};

use super::event_loop::{EventLoop, FLOW};
use super::{NativeClient, NativeError};

/// Sizes and marks of both directions.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    pub size: Vec<(PathDirection, SizeResult)>,
    /// Direction, TOS as sent, TOS as received.
    pub tos: Vec<(PathDirection, u8, u8)>,
}

struct SizeTest<'a, 'e> {
    client: &'a mut NativeClient,
    events: &'a mut EventLoop<'e>,
    fd: &'a OwnedFd,
    id: FlowId,
    header_bytes: u32,
    sequence: u64,
    /// Longest wait for an answer.
    timeout: Duration,
}

/// Outcome of a probe datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeOutcome {
    Arrived {
        tos: u8,
    },
    /// The sender's interface or a router on the way has this limit.
    TooLarge(SizeResult),
    Lost,
}

/// IP packets that are tried first, in bytes.
const LADDER: [u32; 5] = [1280, 1400, 1492, 1500, 9000];
const TRIES: u32 = 3;
/// A search ends when the limits are this close.
const RESOLUTION_BYTES: u32 = 4;
/// ECT(0), ECT(1) and CE, RFC 3168 section 5.
const ECN: [u8; 3] = [2, 1, 3];
/// Multiple of the round trip, and its bounds.
const TIMEOUT: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_millis(500);

/// Examines both directions on an open flow. `rtt` is the round trip of a probe, `dscps` are the
/// marks to try.
pub(super) fn examine(
    client: &mut NativeClient,
    events: &mut EventLoop<'_>,
    fd: &OwnedFd,
    id: FlowId,
    rtt: Duration,
    dscps: &[u8],
) -> Result<Sizes, NativeError> {
    let is_v6 = client.peer.remote.is_ipv6();
    // IPv4 and UDP headers have 28 bytes, IPv6 and UDP headers 48 (RFC 791, RFC 8200, RFC 768).
    let header_bytes = if is_v6 { 48 } else { 28 };
    let timeout = (rtt * 4).clamp(*TIMEOUT.start(), *TIMEOUT.end());
    // `IP_PMTUDISC_PROBE` (ip(7)): sets DF and ignores the cached path MTU, so that each size is
    // tried on the wire.
    let _ = sockopt::set_path_mtu_probe(fd);
    // `IP_RECVERR` (ip(7)): ICMP "fragmentation needed" arrives in the error queue with the
    // router's MTU.
    let _ = sockopt::set_receive_errors(fd, true);
    let _ = sockopt::set_receive_tos(fd, true);

    events.epoll.add(fd, FLOW, Interest::READ)?;

    let mut test = SizeTest {
        client,
        events,
        fd,
        id,
        header_bytes,
        sequence: 0,
        timeout,
    };
    let mut sizes = Sizes::default();

    for direction in [PathDirection::Up, PathDirection::Down] {
        if let Some(found) = test.largest(direction)? {
            sizes.size.push((direction, found));
        }

        // The DSCP is the upper six bits of the byte (RFC 2474), ECN the lower two (RFC 3168).
        let marks = dscps.iter().map(|dscp| dscp << 2).chain(ECN);
        for tos in marks {
            if let ProbeOutcome::Arrived { tos: received } = test.send(direction, LADDER[0], tos)?
                && received != TOS_UNKNOWN
            {
                sizes.tos.push((direction, tos, received));
            }
        }
    }

    test.events.epoll.remove(fd)?;
    Ok(sizes)
}

impl SizeTest<'_, '_> {
    /// The largest packet of a direction; `None` when not even the smallest one arrives.
    fn largest(&mut self, direction: PathDirection) -> Result<Option<SizeResult>, NativeError> {
        let mut passes = None;
        let mut fails = None;
        let mut signal = (SizeSignal::Unlimited, None);
        for mtu in LADDER {
            match self.try_size(direction, mtu)? {
                ProbeOutcome::Arrived { .. } => passes = Some(mtu),
                ProbeOutcome::TooLarge(limit) => {
                    signal = (limit.how, limit.reported_by);
                    // The limit of an own device, or of a router, is exact if a packet of that size
                    // passes.
                    let Some(passes) = passes else {
                        return Ok(None);
                    };
                    if (passes + 1..mtu).contains(&limit.mtu)
                        && matches!(
                            self.try_size(direction, limit.mtu)?,
                            ProbeOutcome::Arrived { .. }
                        )
                    {
                        return Ok(Some(limit));
                    }

                    fails = Some(mtu);
                    break;
                }
                ProbeOutcome::Lost => {
                    signal = (SizeSignal::BlackHole, None);
                    fails = Some(mtu);
                    break;
                }
            }
        }

        let (Some(mut passes), Some(mut fails)) = (passes, fails) else {
            return Ok(passes.map(|mtu| size_result(mtu, signal)));
        };
        while fails - passes > RESOLUTION_BYTES {
            let middle = passes.midpoint(fails);
            match self.try_size(direction, middle)? {
                ProbeOutcome::Arrived { .. } => passes = middle,
                ProbeOutcome::TooLarge(limit) => {
                    fails = middle;
                    signal = (limit.how, limit.reported_by);
                }
                ProbeOutcome::Lost => fails = middle,
            }
        }

        Ok(Some(size_result(passes, signal)))
    }

    fn try_size(
        &mut self,
        direction: PathDirection,
        mtu: u32,
    ) -> Result<ProbeOutcome, NativeError> {
        for _ in 0..TRIES {
            match self.send(direction, mtu, 0)? {
                ProbeOutcome::Lost => {}
                outcome => return Ok(outcome),
            }
        }

        Ok(ProbeOutcome::Lost)
    }

    /// Sends a packet of this size, or requests one.
    fn send(
        &mut self,
        direction: PathDirection,
        mtu: u32,
        tos: u8,
    ) -> Result<ProbeOutcome, NativeError> {
        let payload_bytes = mtu.saturating_sub(self.header_bytes);
        self.sequence += 1;
        let is_request = direction == PathDirection::Down;
        let len = if is_request {
            HEAD_LEN + 8
        } else {
            payload_bytes as usize
        };
        let mut datagram = vec![0; len.max(HEAD_LEN)];

        let flags = if is_request { FLAG_SIZE_REQUEST } else { 0 };
        let head = self.id.head(
            DatagramType::SizeProbe,
            self.sequence,
            clock::monotonic_ns(),
        );
        DatagramHead { flags, ..head }.encode_into(&mut datagram);

        if is_request {
            SizeAnswer {
                bytes: payload_bytes,
                tos,
                reported_by: None,
            }
            .encode_into(&mut datagram);
        }

        let sent = udp::send_with_tos(self.fd, &datagram, if is_request { 0 } else { tos });
        match sent {
            Err(error) if error.raw_os_error() == Some(errno::EMSGSIZE) => {
                while udp::take_error(self.fd, &mut [0; 64]).is_ok() {}
                // This socket ignores what routers reported (`IP_PMTUDISC_PROBE`, ip(7)): the
                // interface is the limit.
                let mtu = sockopt::path_mtu(self.fd).unwrap_or(0);
                let signal = (SizeSignal::Interface, None);
                Ok(ProbeOutcome::TooLarge(size_result(mtu, signal)))
            }
            Err(_) => Ok(ProbeOutcome::Lost),
            Ok(_) => self.await_answer(direction, payload_bytes),
        }
    }

    fn await_answer(
        &mut self,
        direction: PathDirection,
        payload_bytes: u32,
    ) -> Result<ProbeOutcome, NativeError> {
        let end = Instant::now() + self.timeout;
        let mut buffer = vec![0; 16 * 1024];

        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(ProbeOutcome::Lost);
            }

            if let Ok(message) = udp::recv_message(self.fd, &mut buffer) {
                if let Some(outcome) = self.judge(&message, direction, payload_bytes) {
                    return Ok(outcome);
                }
                continue;
            }
            match udp::take_error(self.fd, &mut [0; 64]) {
                Ok(error) => {
                    if let Some(mtu) = error.mtu_bytes() {
                        let signal = (SizeSignal::Reported, error.offender);
                        return Ok(ProbeOutcome::TooLarge(size_result(mtu, signal)));
                    }
                }
                // Nothing has arrived, not even an error.
                Err(_) => self.client.turn(self.events, left)?,
            }
        }
    }

    /// What a datagram says about the probe; `None` where it is no answer to it.
    fn judge(
        &self,
        message: &Message<'_>,
        direction: PathDirection,
        payload_bytes: u32,
    ) -> Option<ProbeOutcome> {
        let head = DatagramHead::decode(message.data)
            .filter(|head| (head.id(), head.sequence) == (self.id, self.sequence))?;
        match (head.datagram_type, SizeAnswer::decode(message.data)) {
            (DatagramType::SizeAnswer, Some(answer)) if head.flags & FLAG_TOO_LARGE != 0 => {
                let is_interface = head.flags & FLAG_INTERFACE != 0;
                let how = if is_interface {
                    SizeSignal::Interface
                } else {
                    SizeSignal::Reported
                };
                let signal = (how, answer.reported_by);
                Some(ProbeOutcome::TooLarge(size_result(answer.bytes, signal)))
            }
            (DatagramType::SizeAnswer, Some(answer)) if direction == PathDirection::Up => {
                // A middlebox that cuts datagrams delivers them, but not whole.
                let is_whole = answer.bytes == payload_bytes;
                Some(if is_whole {
                    ProbeOutcome::Arrived { tos: answer.tos }
                } else {
                    ProbeOutcome::Lost
                })
            }
            (DatagramType::SizeProbe, _) if direction == PathDirection::Down => {
                let tos = message.tos.unwrap_or(TOS_UNKNOWN);
                Some(ProbeOutcome::Arrived { tos })
            }
            _ => None,
        }
    }
}

fn size_result(mtu: u32, (how, reported_by): (SizeSignal, Option<IpAddr>)) -> SizeResult {
    SizeResult {
        mtu,
        how,
        reported_by,
    }
}

/// Pairs of marks of one direction without repetition.
pub(super) fn distinct(
    pairs: impl IntoIterator<Item = (PathDirection, u8, u8)>,
) -> Vec<(PathDirection, u8, u8)> {
    let known: BTreeSet<_> = pairs.into_iter().collect();
    known.into_iter().collect()
}
