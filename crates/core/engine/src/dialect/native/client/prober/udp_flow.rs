//! Probes of one UDP flow.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use linerate_model::path::ProbeSample;
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, FlowId, PROBE_LEN_MIN, ReplyBody, TOS_UNKNOWN,
};
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::sockopt;
use linerate_sys::udp::{self, Message};

use super::plan::{FlowPlan, ProbeResults, sample};
use crate::dialect::native::client::flow::{self, Opening, ReserveFlow};

/// A connected socket whose flow is open.
pub(super) struct UdpFlow {
    pub fd: OwnedFd,
    id: FlowId,
    pub tos: u8,
    sent: u64,
    pub next_ns: u64,
    /// Arrival of the last reply; before the first one, when the flow began.
    replied_ns: u64,
    /// Probes sent since then.
    unanswered: u32,
    /// Reserve flow, opened when no reply arrives any more.
    spare: Option<ReserveFlow>,
    opening: Option<Opening>,
    offset: RealtimeOffset,
}

/// The path has lost a flow that returns no reply for this time, ns, and to this number of probes:
/// beside a slow load there are few.
pub(crate) const SILENCE_NS: u64 = 1_000_000_000;
const UNANSWERED_MIN: u32 = 5;
/// Datagrams read per call.
const DATAGRAMS_PER_CALL: u32 = 64;

impl UdpFlow {
    pub(super) fn new(plan: FlowPlan, first_ns: u64) -> Self {
        let FlowPlan {
            fd,
            id,
            dscp,
            spare,
        } = plan;
        prepare(&fd);
        Self {
            fd,
            id,
            tos: dscp << 2,
            sent: 0,
            next_ns: first_ns,
            replied_ns: first_ns,
            unanswered: 0,
            spare,
            opening: None,
            offset: RealtimeOffset::read(),
        }
    }

    /// Opens the reserve flow once this one returns no replies; true when that has taken its place,
    /// with another descriptor.
    pub(super) fn replace_if_silent(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.replied_ns) >= SILENCE_NS
            && self.unanswered >= UNANSWERED_MIN
            && let Some(spare) = self.spare.take()
        {
            self.opening = spare.open(now_ns).ok();
        }

        let Some(opening) = self.opening.take_if(|opening| opening.advance(now_ns)) else {
            return false;
        };
        prepare(&opening.fd);
        self.fd = opening.fd;
        self.id = opening.granted.id;

        true
    }

    /// Sends the next probe. One that the kernel refuses is a lost one.
    pub(super) fn send(&mut self, now_ns: u64, period_ns: u64) -> ProbeSample {
        // Probes that a busy thread missed are not made up for.
        self.next_ns += ((now_ns - self.next_ns) / period_ns + 1) * period_ns;
        let sent_ns = clock::monotonic_ns();

        let head = self.id.head(DatagramType::Probe, self.sent, sent_ns);
        self.sent += 1;
        self.unanswered = self.unanswered.saturating_add(1);

        let mut datagram = [0; PROBE_LEN_MIN];
        head.encode_into(&mut datagram);
        // A probe that the host drops stays without a reply and counts as lost, like one that the
        // path drops.
        let _ = udp::send_with_tos(&self.fd, &datagram, self.tos);
        sample(sent_ns, None)
    }

    /// Reads replies into the samples of this flow.
    pub(super) fn receive(&mut self, index: usize, results: &mut ProbeResults) {
        let mut buffer = [0; 2 * PROBE_LEN_MIN];
        self.offset.refresh();

        for _ in 0..DATAGRAMS_PER_CALL {
            match udp::recv_message(&self.fd, &mut buffer) {
                Ok(message) => {
                    self.take(&message, index, results);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // An error of an earlier send: that probe is lost.
                Err(_) => {}
            }
        }
    }

    /// `None` for what answers no probe of this flow.
    fn take(
        &mut self,
        message: &Message<'_>,
        index: usize,
        results: &mut ProbeResults,
    ) -> Option<()> {
        let received_ns = message.arrival_ns(self.offset, clock::monotonic_ns());
        let head = DatagramHead::decode(message.data)?;
        let body = ReplyBody::decode(message.data)?;
        let is_ours = (head.datagram_type, head.id()) == (DatagramType::Reply, self.id);
        let (_, samples) = results.udp.get_mut(index).filter(|_| is_ours)?;
        let sample = samples.get_mut(usize::try_from(head.sequence).ok()?)?;
        // The stamp is echoed: a reply of an earlier flow with the same sequence number does not
        // match.
        if sample.sent_ns != head.stamp || received_ns < sample.sent_ns {
            return None;
        }

        // A reply that the network doubled is ignored.
        if sample.received_ns.is_none() {
            sample.peer_received_ns = Some(body.received_ns);
            sample.peer_sent_ns = Some(body.sent_ns);
            sample.received_ns = Some(received_ns);
            self.replied_ns = received_ns;
            self.unanswered = 0;

            if index == 0 {
                results.newest_rtt_ns = sample.rtt_ns();
            }

            note(&mut results.tos_up, (self.tos, body.tos));
            note(
                &mut results.tos_down,
                (body.tos, message.tos.unwrap_or(TOS_UNKNOWN)),
            );
        }

        Some(())
    }
}

/// Without these a time is that of the read, and marks are unknown.
fn prepare(fd: &OwnedFd) {
    let _ = sockopt::SO_TIMESTAMPNS.set(fd, true);
    let _ = sockopt::set_receive_tos(fd, true);
}

impl Drop for UdpFlow {
    fn drop(&mut self) {
        flow::close(&self.fd, self.id);
    }
}

/// Keeps each pair of marks that is known once.
fn note(pairs: &mut Vec<(u8, u8)>, pair: (u8, u8)) {
    if pair.0 != TOS_UNKNOWN && pair.1 != TOS_UNKNOWN && !pairs.contains(&pair) && pairs.len() < 256
    {
        pairs.push(pair);
    }
}
