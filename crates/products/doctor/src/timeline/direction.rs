//! One direction of a test, interval by interval and in total.

use linerate_model::interval::{StreamInterval, TcpInterval, TcpLimits};
use linerate_model::{StreamRole, measure};
use serde::{Deserialize, Serialize};

use super::run_facts::{RunFacts, added_up, insert, median, shares, spread};
use crate::arithmetic::to_f64;
use crate::period::STEPS_MAX;

/// Totals of one direction over its streams.
#[derive(Debug, Default)]
pub(super) struct DirectionStats {
    /// Rate of every full interval, bit/s.
    rates_bps: Vec<f64>,
    first_seconds: f64,
    seconds: f64,
    limits: Option<TcpLimits>,
    windows_bytes: Option<u64>,
    pub min_rtt_us: Option<u32>,
    pub mss_bytes: Option<u32>,
    pmtu_bytes: Option<u32>,
    intervals: Vec<TestInterval>,
    cwnd_bytes: u64,
    /// Smallest congestion window of all streams together at the end of an interval.
    cwnd_min_bytes: Option<u64>,
    /// Intervals after the first whose retransmissions are known, and those of them with some.
    later: u32,
    later_with_loss: u32,
}

/// One interval of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestInterval {
    /// Where it begins, seconds since the data began.
    pub start_s: f64,
    /// Where it ends, same origin.
    pub end_s: f64,
    /// Facts of this end about it, named as those of a run.
    pub facts: RunFacts,
}

/// Intervals whose rates are kept; a longer test is described by its beginning.
const RATES_MAX: usize = 100_000;

impl DirectionStats {
    pub(super) fn add_totals(
        &mut self,
        rows: &[&StreamInterval],
        tcp: &[TcpInterval],
        seconds: f64,
        rate_bps: f64,
        last: bool,
    ) {
        if self.rates_bps.is_empty() {
            self.first_seconds = seconds;
        }

        // The stub at the end of a test is no interval of its own.
        let whole = !last || seconds >= 0.9 * self.first_seconds;
        if whole && self.rates_bps.len() < RATES_MAX {
            self.note_loss(tcp);
            self.rates_bps.push(rate_bps);
        }

        let limits: Vec<TcpLimits> = tcp.iter().filter_map(|tcp| tcp.limits).collect();
        if !limits.is_empty() {
            self.limits = Some(added_up(limits.into_iter().chain(self.limits)));
        }
        self.seconds += rows.iter().map(|row| row.seconds()).sum::<f64>();
        self.windows_bytes = self.windows_bytes.max(windows(tcp));
        let rtts = tcp.iter().filter_map(|tcp| tcp.min_rtt_us);
        self.min_rtt_us = rtts.chain(self.min_rtt_us).min();

        // Sizes of 0 are not known.
        self.mss_bytes = self.mss_bytes.max(mss(tcp));
        let mtus = tcp.iter().map(|tcp| tcp.pmtu_bytes);
        self.pmtu_bytes = mtus.filter(|bytes| *bytes > 0).min().or(self.pmtu_bytes);
    }

    fn note_loss(&mut self, tcp: &[TcpInterval]) {
        if tcp.is_empty() {
            return;
        }

        let cwnds = tcp.iter().map(|tcp| tcp.snd_cwnd_bytes);
        let cwnd_bytes = Some(cwnds.fold(0, u64::saturating_add)).filter(|bytes| *bytes > 0);
        self.cwnd_min_bytes = cwnd_bytes.into_iter().chain(self.cwnd_min_bytes).min();
        if !self.rates_bps.is_empty() {
            self.later += 1;
            self.later_with_loss += u32::from(tcp.iter().any(|tcp| tcp.retransmits > 0));
        }
    }

    pub(super) fn add_interval(
        &mut self,
        rows: &[&StreamInterval],
        tcp: &[TcpInterval],
        [start_s, end_s]: [f64; 2],
        rate_bps: f64,
    ) {
        if self.intervals.len() >= STEPS_MAX {
            return;
        }

        let mut facts = RunFacts::new();
        // What a UDP sender sends is not what arrives.
        let arrives = rows
            .iter()
            .all(|row| row.role == StreamRole::Receiver || row.udp.is_none());
        insert(&mut facts, "received_bps", arrives.then_some(rate_bps));
        datagrams(&mut facts, rows);

        let limits: Option<Vec<TcpLimits>> = tcp.iter().map(|tcp| tcp.limits).collect();
        let limits = limits.filter(|limits| !limits.is_empty()).map(added_up);
        shares(
            &mut facts,
            limits,
            rows.iter().map(|row| row.seconds()).sum(),
        );
        insert(&mut facts, "snd_wnd_bytes", windows(tcp));

        let again: u64 = tcp.iter().map(|tcp| tcp.retransmits).sum();
        let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
        let share = mss(tcp).and_then(|mss| measure::retransmit_share(again, bytes, mss));
        insert(&mut facts, "retransmit_share", share);
        if !tcp.is_empty() {
            let twice = tcp
                .iter()
                .map(|tcp| tcp.dsack_segments)
                .sum::<Option<u64>>();
            insert(&mut facts, "retransmits", Some(again));
            insert(&mut facts, "dsack_segments", twice);
        }
        let cwnd_bytes = tcp.iter().map(|tcp| tcp.snd_cwnd_bytes).sum();

        // Whether it was slow start is known once the rate of the rest is; until then it may have
        // been.
        let opening = cwnd_bytes > self.cwnd_bytes && again == 0 && !tcp.is_empty();
        insert(&mut facts, SLOW_START, opening.then_some(true));
        self.cwnd_bytes = cwnd_bytes;
        self.intervals.push(TestInterval {
            start_s,
            end_s,
            facts,
        });
    }

    /// The intervals. Those in which the window opened are marked if they are within the duration
    /// of slow start.
    pub(super) fn intervals(&self) -> Vec<TestInterval> {
        let end_s = self.slow_start_s().unwrap_or(0.0);
        let begin_s = self.intervals.first().map_or(0.0, |first| first.start_s);

        let mut intervals = self.intervals.clone();
        for interval in &mut intervals {
            if f64::midpoint(interval.start_s, interval.end_s) - begin_s >= end_s {
                interval.facts.remove(SLOW_START);
            }
        }

        intervals
    }

    /// Round trips until ten segments have doubled to what the path holds.
    fn slow_start_s(&self) -> Option<f64> {
        // RFC 6928: the initial window has ten segments.
        const FIRST_SEGMENTS: f64 = 10.0;
        let rtt_s = f64::from(self.min_rtt_us?) / 1e6;
        let first = FIRST_SEGMENTS * f64::from(self.mss_bytes?);
        // The first interval may be slow start itself.
        let path = median(self.rates_bps.get(1..)?)? / 8.0 * rtt_s;
        (path > first).then(|| rtt_s * (path / first).log2().ceil())
    }

    pub(super) fn describe(&self, facts: &mut RunFacts) {
        // Shorter intervals see single stalls, longer ones hide the start.
        if let ([first, later @ ..], 0.9..=1.1) = (self.rates_bps.as_slice(), self.first_seconds)
            && let Some(median) = median(later)
        {
            insert(facts, "first_second_bps", Some(*first));
            insert(facts, "later_median_bps", Some(median));

            insert(facts, "later_spread", spread(later, median));
        }

        if self.rates_bps.len() > 1 {
            let stalls = self.rates_bps.iter().filter(|rate| **rate == 0.0).count();
            let share = to_f64(stalls as u64) / to_f64(self.rates_bps.len() as u64);
            insert(facts, "stalled_share", Some(share));
        }

        let lossy =
            (self.later > 0).then(|| f64::from(self.later_with_loss) / f64::from(self.later));
        insert(facts, "lossy_seconds_share", lossy);
        insert(facts, "cwnd_min_bytes", self.cwnd_min_bytes);
        shares(facts, self.limits, self.seconds);
        insert(facts, "snd_wnd_bytes", self.windows_bytes);
        insert(facts, "min_rtt_us", self.min_rtt_us);
        insert(facts, "mss_bytes", self.mss_bytes);
        insert(facts, "pmtu_bytes", self.pmtu_bytes);
    }
}

/// The windows of all streams together.
fn windows(tcp: &[TcpInterval]) -> Option<u64> {
    let windows = tcp.iter().map(|tcp| tcp.snd_wnd_bytes);
    windows.sum::<Option<u64>>().filter(|_| !tcp.is_empty())
}

fn mss(tcp: &[TcpInterval]) -> Option<u32> {
    let sizes = tcp.iter().map(|tcp| tcp.mss_bytes);
    sizes.filter(|mss| *mss > 0).max()
}

/// The congestion window grew; see [`DirectionStats::intervals`].
const SLOW_START: &str = "slow_start";

/// Datagrams of an interval: those that a sender sent, and those that a receiver saw, received and
/// missed.
fn datagrams(facts: &mut RunFacts, rows: &[&StreamInterval]) {
    let of = |role: StreamRole| {
        let udp: Vec<_> = rows
            .iter()
            .filter(|row| row.role == role)
            .filter_map(|row| row.udp)
            .collect();
        let packets: u64 = udp.iter().map(|row| row.packets).sum();

        // Late datagrams take back losses of the interval before.
        let lost = udp
            .iter()
            .map(|row| row.lost)
            .sum::<i64>()
            .max(0)
            .unsigned_abs();
        (!udp.is_empty()).then_some((packets, lost))
    };

    insert(
        facts,
        "sent_packets",
        of(StreamRole::Sender).map(|(packets, _)| packets),
    );
    if let Some((packets, lost)) = of(StreamRole::Receiver) {
        insert(
            facts,
            "received_packets",
            Some(packets.saturating_sub(lost)),
        );
        let share = (packets > 0).then(|| to_f64(lost) / to_f64(packets));
        insert(facts, "loss_share", share);
    }
}
