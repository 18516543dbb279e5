//! Datagrams at a rate that changes while they are sent: that of a search for capacity.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use linerate_native::wire::datagram::{DatagramHead, DatagramType, Feedback, FlowId};
use linerate_sys::{errno, udp};

use crate::data::worker::{Ended, Pump, Pumped, Scratch};
use crate::lock::lock;
use crate::measure::counters::StreamCounters;

/// State that a sender and the thread that controls its rate share.
#[derive(Debug, Default)]
pub(super) struct RateControl {
    /// Rate in bit/s of IP packets; 0 sends nothing.
    pub rate_bps: AtomicU64,
    /// Reports of the receiver, with the time up to which each counts.
    reports: Mutex<Vec<(u64, Feedback)>>,
}

impl RateControl {
    /// Takes the reports that arrived.
    pub(super) fn take_reports(&self) -> Vec<(u64, Feedback)> {
        std::mem::take(&mut lock(&self.reports))
    }

    fn add(&self, stamp_ns: u64, feedback: Feedback) {
        let mut reports = lock(&self.reports);
        if reports.len() < REPORTS_MAX {
            reports.push((stamp_ns, feedback));
        }
    }
}

/// Sends datagrams at the rate of a [`RateControl`], and reads the reports of their receiver.
pub(super) struct RateControlledSender {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    id: FlowId,
    rate_control: Arc<RateControl>,
    /// The receiver decides on the rate, not this end.
    follows_receiver: bool,
    datagram_len: usize,
    budget: PacketBudget,
    buffer: Vec<u8>,
    sent: u64,
    next_report: u64,
    next_read_ns: u64,
    last_request_ns: u64,
}

/// Packets that may be sent at a rate that changes.
struct PacketBudget {
    packet_bits: u64,
    /// Bits that may be sent, times the ns of a second.
    saved: u128,
    last_ns: u64,
}

/// Between two looks for reports.
const READ_PERIOD_NS: u64 = 2_000_000;
/// Shortest pause of the sender, so that a fast one sends several datagrams per call.
const TICK_NS: u64 = 250_000;
/// Pause after the device queue was full.
const QUEUE_FULL_PAUSE_NS: u64 = 50_000;
/// Time at the rate that a late sender catches up with.
const CATCH_UP_NS: u64 = 5_000_000;
/// Without a request of the receiver for so long nothing is sent.
const SILENCE_NS: u64 = 2_000_000_000;
/// Highest rate that a receiver may request: the last of RFC 9097 appendix A is lower.
const RATE_MAX_BPS: u64 = 1_000_000_000_000;
/// Reports that wait for the thread that steers.
const REPORTS_MAX: usize = 1_000;
const NS_PER_S: u128 = 1_000_000_000;

impl RateControlledSender {
    /// Sends datagrams of this UDP payload, which are `header_bytes` longer as IP packets.
    pub(super) fn new(
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        id: FlowId,
        rate_control: Arc<RateControl>,
        follows_receiver: bool,
        (datagram_len, header_bytes): (usize, u64),
        now_ns: u64,
    ) -> Self {
        let packet_bits = (datagram_len as u64 + header_bytes) * 8;
        Self {
            fd,
            counters,
            id,
            rate_control,
            follows_receiver,
            datagram_len,
            budget: PacketBudget {
                packet_bits,
                saved: 0,
                last_ns: now_ns,
            },
            buffer: vec![0; datagram_len * udp::BATCH_MAX],
            sent: 0,
            next_report: 0,
            next_read_ns: 0,
            last_request_ns: now_ns,
        }
    }

    fn read_reports(&mut self, now_ns: u64) {
        if now_ns < self.next_read_ns {
            return;
        }

        self.next_read_ns = now_ns + READ_PERIOD_NS;
        let mut buffer = [0; 128];
        // An error of an earlier send is taken by the read that returns it.
        while let Ok(len) = udp::recv(&*self.fd, &mut buffer) {
            self.take_report(buffer.get(..len).unwrap_or_default(), now_ns);
        }
    }

    /// The newest counts among reports that overtook each other.
    fn take_report(&mut self, datagram: &[u8], now_ns: u64) -> Option<()> {
        let head = DatagramHead::decode(datagram)?;
        let is_ours = (head.datagram_type, head.flow, head.tag)
            == (DatagramType::Feedback, self.id.flow, self.id.tag);
        let feedback =
            Feedback::decode(datagram).filter(|_| is_ours && head.sequence >= self.next_report)?;

        self.next_report = head.sequence + 1;
        if self.follows_receiver {
            self.last_request_ns = now_ns;
            self.rate_control
                .rate_bps
                .store(feedback.rate_bps.min(RATE_MAX_BPS), Ordering::Relaxed);
        } else if feedback.received <= self.sent {
            self.rate_control.add(head.stamp, feedback);
        }

        Some(())
    }

    fn rate_bps(&self, now_ns: u64) -> u64 {
        let is_silent =
            self.follows_receiver && now_ns.saturating_sub(self.last_request_ns) > SILENCE_NS;
        if is_silent {
            0
        } else {
            self.rate_control.rate_bps.load(Ordering::Relaxed)
        }
    }

    fn send(&mut self, count: usize, now_ns: u64) -> std::io::Result<usize> {
        let count = count.min(udp::BATCH_MAX);
        for (sequence, datagram) in
            (self.sent..).zip(self.buffer.chunks_exact_mut(self.datagram_len).take(count))
        {
            self.id
                .head(DatagramType::Data, sequence, now_ns)
                .encode_into(datagram);
        }

        let bytes = self
            .buffer
            .get(..count * self.datagram_len)
            .unwrap_or_default();
        let sent = udp::send_many(&self.fd, bytes, self.datagram_len)?;
        self.sent += sent as u64;
        self.counters
            .add((sent * self.datagram_len) as u64, sent as u64);
        self.counters.set_packets(self.sent);

        Ok(sent)
    }
}

impl Pump for RateControlledSender {
    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        self.read_reports(now_ns);
        let rate_bps = self.rate_bps(now_ns);
        let room = scratch.room_bytes / self.datagram_len.max(1);
        let mut due = self.budget.due(now_ns, rate_bps).min(room.max(1));
        while due > 0 {
            match self.send(due, now_ns) {
                Ok(sent) => {
                    self.budget.spend(sent);
                    due = due.saturating_sub(sent);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Pumped::Blocked,
                // It is the answer to an earlier datagram.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionRefused
                    ) => {}
                Err(error) if error.raw_os_error() == Some(errno::ENOBUFS) => {
                    return Pumped::Until(now_ns + QUEUE_FULL_PAUSE_NS);
                }
                Err(error) => return Pumped::Ended(Ended::Failed(error)),
            }
        }

        Pumped::Until(self.budget.next_ns(now_ns, rate_bps))
    }
}

impl PacketBudget {
    /// Packets that are due at the rate since the last call.
    fn due(&mut self, now_ns: u64, rate_bps: u64) -> usize {
        let elapsed_ns = u128::from(now_ns.saturating_sub(self.last_ns));
        self.last_ns = now_ns;
        let rate = u128::from(rate_bps);
        let most = (rate * u128::from(CATCH_UP_NS)).max(self.cost());
        self.saved = (self.saved + rate * elapsed_ns).min(most);
        usize::try_from(self.saved / self.cost()).unwrap_or(usize::MAX)
    }

    fn spend(&mut self, packets: usize) {
        self.saved = self.saved.saturating_sub(packets as u128 * self.cost());
    }

    /// When the next packet is due, or reports are read.
    fn next_ns(&self, now_ns: u64, rate_bps: u64) -> u64 {
        let missing = self.cost().saturating_sub(self.saved);
        let wait_ns = missing
            .checked_div(u128::from(rate_bps))
            .and_then(|ns| u64::try_from(ns).ok());
        now_ns + wait_ns.map_or(READ_PERIOD_NS, |ns| (ns + 1).clamp(TICK_NS, READ_PERIOD_NS))
    }

    fn cost(&self) -> u128 {
        u128::from(self.packet_bits) * NS_PER_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1,250 bytes within a second, of a sender that is always woken in time.
    fn packets_in_a_second(rate_bps: u64, late_ns: u64) -> usize {
        let mut budget = PacketBudget {
            packet_bits: 10_000,
            saved: 0,
            last_ns: 0,
        };
        let (mut now_ns, mut sent) = (0, 0);
        while now_ns < 1_000_000_000 {
            let due = budget.due(now_ns, rate_bps);
            budget.spend(due);
            sent += due;
            now_ns = budget.next_ns(now_ns, rate_bps) + late_ns;
        }

        sent
    }

    #[test]
    fn rate_is_met_whatever_its_size() {
        for (rate_bps, packets) in [
            (0, 0),
            (500_000, 50),
            (1_000_000, 100),
            (50_000_000, 5000),
            (1_000_000_000, 100_000),
        ] {
            let found = packets_in_a_second(rate_bps, 0);
            assert!(
                found.abs_diff(packets) <= packets / 100 + 1,
                "{rate_bps}: {found}"
            );
        }

        assert!(
            packets_in_a_second(50_000_000, 1_000_000).abs_diff(5000) <= 60,
            "a sender that wakes late"
        );
    }

    #[test]
    fn pause_is_not_made_up_for() {
        let mut budget = PacketBudget {
            packet_bits: 10_000,
            saved: 0,
            last_ns: 0,
        };
        // 5 ms at 100 Mbit/s are 50 packets.
        assert_eq!(budget.due(3_000_000_000, 100_000_000), 50);
    }
}
