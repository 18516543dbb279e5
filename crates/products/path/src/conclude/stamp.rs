//! Report of a STAMP session. Times are of the wall clocks of both ends.

use linerate_engine::dialect::stamp::client::{Answer, Measured, Probe, TimeFormat, losses};
use linerate_model::path::{
    Delay, IdleDelays, PathReport, PhaseKind, ProbeSample, SampleKind, SampleSeries, StampResult,
    absent,
};

use super::clock::{Clock, ClockFacts};
use super::delays::{probe_jitter_ns, round_trips};
use super::series::round_trips_of;

/// Distance of the first time of each end from the zero of its samples, ns: packets that were
/// reordered may have earlier ones.
const ZERO_NS: u64 = 3_600_000_000_000;

/// Adds the results of a session to a report.
pub(crate) fn stamp(measured: &Measured, report: &mut PathReport) {
    let samples = samples(&measured.probes);
    let clock = Clock::from_probes(&samples, ClockFacts::default());
    let queues = clock.map(|clock| clock.queues(&samples));
    let found = losses(&measured.probes);
    let answers = || measured.probes.iter().filter_map(|probe| probe.answer);

    let mut idle = IdleDelays {
        rtt: Some(round_trips(&samples)),
        jitter_ns: probe_jitter_ns(&samples),
        rtt_series: round_trips_of(&samples, ZERO_NS),
        ..IdleDelays::default()
    };
    match one_way_error(measured) {
        Ok(error_ns) => {
            let (up, down): (Vec<i64>, Vec<i64>) =
                measured.probes.iter().filter_map(one_way).unzip();
            idle.one_way_up = delay(&up, error_ns);
            idle.one_way_down = delay(&down, error_ns);
        }
        Err(reason) => {
            let reason = reason.to_owned();
            report
                .absent
                .insert(absent::ONE_WAY_DELAY.to_owned(), reason);
        }
    }
    if let Err(reason) = found {
        let key = absent::LOSS_BY_DIRECTION.to_owned();
        report.absent.insert(key, reason.to_owned());
    }
    let found = found.ok();

    report.idle = Some(idle);
    report.stamp = Some(StampResult {
        sent: measured.probes.len() as u64,
        lost_up: found.map(|found| found.up),
        lost_down: found.map(|found| found.down),
        lost_unplaced: found.map(|found| found.unplaced),
        queue_up: queues.map(|(up, _)| up),
        queue_down: queues.map(|(_, down)| down),
        ttl_up: answers()
            .map(|answer| answer.ttl)
            .filter(|ttl| *ttl > 0)
            .min(),
    });
}

/// Single packets as columns.
pub(crate) fn stamp_samples(probes: &[Probe]) -> SampleSeries {
    let samples = samples(probes);
    let since_begin = |sample: &ProbeSample| (sample.sent_ns - ZERO_NS).cast_signed();
    SampleSeries {
        sent_ns: samples.iter().map(since_begin).collect(),
        rtt_ns: samples.iter().map(ProbeSample::rtt_ns).collect(),
        ..SampleSeries::new(PhaseKind::Stamp, SampleKind::Probe)
    }
}

/// Times of each end since a zero of its own.
fn samples(probes: &[Probe]) -> Vec<ProbeSample> {
    let zero = |ns: Option<u64>| ns.unwrap_or_default().saturating_sub(ZERO_NS);
    let here = zero(probes.first().map(|probe| probe.sent_ns));
    let mut answers = probes.iter().filter_map(|probe| probe.answer);
    let there = zero(answers.next().map(|answer| answer.reflector_received_ns));

    let sample = |probe: &Probe| ProbeSample {
        sent_ns: probe.sent_ns - here,
        peer_received_ns: probe
            .answer
            .map(|a| a.reflector_received_ns.saturating_sub(there)),
        peer_sent_ns: probe
            .answer
            .map(|a| a.reflector_sent_ns.saturating_sub(there)),
        received_ns: probe.answer.map(|a| a.received_ns.saturating_sub(here)),
    };
    probes.iter().map(sample).collect()
}

/// Error of delays in one direction, the sum of both ends, ns.
fn one_way_error(measured: &Measured) -> Result<u64, &'static str> {
    let answers = || measured.probes.iter().filter_map(|probe| probe.answer);
    let is_kept = |answer: Answer| answer.error.is_synchronized;
    let is_utc = |answer: Answer| answer.error.format == TimeFormat::Ntp;
    let there = answers().map(|answer| answer.error.error_ns).max();

    match (measured.error.is_synchronized, answers().all(is_kept)) {
        (false, false) => Err("no clock of either end is synchronized"),
        (false, true) => Err("the clock of this host is not synchronized"),
        (true, false) => Err("the clock of the reflector is not synchronized"),
        // The time of PTP is ahead of UTC by leap seconds, unless it is set up otherwise.
        (true, true) if !answers().all(is_utc) => Err("the reflector has times of PTP, not of UTC"),
        (true, true) => Ok(measured
            .error
            .error_ns
            .saturating_add(there.unwrap_or_default())),
    }
}

/// Delay to the reflector and back, ns.
fn one_way(probe: &Probe) -> Option<(i64, i64)> {
    let answer = probe.answer?;
    let between = |from: u64, to: u64| to.wrapping_sub(from).cast_signed();
    Some((
        between(probe.sent_ns, answer.reflector_received_ns),
        between(answer.reflector_sent_ns, answer.received_ns),
    ))
}

fn delay(delays_ns: &[i64], error_ns: u64) -> Option<Delay> {
    let mut delay = Delay::of(delays_ns, 0);
    delay.error_ns = Some(error_ns);
    (delay.n > 0).then_some(delay)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use linerate_engine::dialect::stamp::client::ErrorEstimate;
    use linerate_model::measure::MeasureName;
    use linerate_model::path::{Dialect, PathState, PathTarget, Profile};
    use linerate_model::record::{Trial, Way};

    use super::*;

    const MS: u64 = 1_000_000;
    /// 2026 in ns since 1970.
    const NOW_NS: u64 = 1_796_000_000_000 * MS;

    fn kept(error_ns: u64) -> ErrorEstimate {
        ErrorEstimate {
            is_synchronized: true,
            error_ns,
            ..ErrorEstimate::default()
        }
    }

    /// Packets that take 10 ms to a reflector, whose clock is ahead by `offset_ns`, wait there for
    /// 5 ms, and take 3 ms back; every tenth has a queue of 2 ms on its way there.
    fn measured(offset_ns: i64, here: ErrorEstimate, there: ErrorEstimate) -> Measured {
        let probe = |n: u64| {
            let sent_ns = NOW_NS + n * 20 * MS;
            let queue_ns = if n.is_multiple_of(10) { 2 * MS } else { 0 };
            let arrived_ns = sent_ns + 10 * MS + queue_ns;
            Probe {
                sent_ns,
                answer: (n % 7 != 3).then_some(Answer {
                    sequence: u32::try_from(n).expect("few"),
                    reflector_received_ns: arrived_ns.wrapping_add_signed(offset_ns),
                    reflector_sent_ns: (arrived_ns + 5 * MS).wrapping_add_signed(offset_ns),
                    received_ns: arrived_ns + 8 * MS,
                    error: there,
                    ttl: 61,
                }),
            }
        };
        Measured {
            probes: (0..700).map(probe).collect(),
            error: here,
            is_refused: false,
            is_interrupted: false,
        }
    }

    fn report(measured: &Measured) -> PathReport {
        let host = Ipv4Addr::LOCALHOST;
        let target = PathTarget::new("r", 862, host.into(), Dialect::Stamp);
        let mut report = PathReport::new(PathState::Complete, Profile::Default, target);
        stamp(measured, &mut report);
        report
    }

    #[test]
    fn round_trips_and_queues_are_the_same_whatever_the_reflectors_clock_shows() {
        let years_ns = 50 * 365 * 86_400_000 * MS as i64;
        for offset_ns in [0, 7_000_000_001, -(NOW_NS as i64) + 1, years_ns, -1] {
            let report = report(&measured(offset_ns, kept(0), ErrorEstimate::default()));
            let (idle, stamp) = (report.idle.expect("idle"), report.stamp.expect("stamp"));
            let rtt = idle.rtt.expect("a round trip");
            let expected = [(13 * MS) as i64, (15 * MS) as i64].map(Some);
            assert_eq!([rtt.p50_ns, rtt.max_ns], expected, "{offset_ns}");
            assert_eq!((rtt.n, rtt.lost), (600, 100));

            let high =
                |queue: Option<Delay>| queue.and_then(|queue| queue.p95_ns).expect("a queue");
            let error_ns = high(stamp.queue_up).abs_diff(2 * MS as i64);
            assert!(error_ns < 1000, "{offset_ns}: {error_ns}");
            assert!(high(stamp.queue_down) < 1000, "{offset_ns}");
            assert_eq!(stamp.ttl_up, Some(61));
        }
    }

    #[test]
    fn one_way_delays_need_two_synchronized_clocks() {
        let unknown = ErrorEstimate::default();
        let ptp = ErrorEstimate {
            format: TimeFormat::Ptp,
            ..kept(1)
        };
        for (here, there, reason) in [
            (unknown, unknown, Some("of either end")),
            (unknown, kept(1), Some("of this host")),
            (kept(1), unknown, Some("of the reflector")),
            (kept(1), ptp, Some("times of PTP")),
            (kept(3000), kept(4000), None),
        ] {
            let report = report(&measured(0, here, there));
            let idle = report.idle.expect("idle");
            let absent = report.absent.get(absent::ONE_WAY_DELAY);
            assert_eq!(absent.is_some(), reason.is_some(), "{absent:?}");
            assert_eq!(idle.one_way_up.is_none(), reason.is_some());
            let named = reason.is_none_or(|part| absent.is_some_and(|text| text.contains(part)));
            assert!(named, "{absent:?}");
        }

        let idle = report(&measured(0, kept(3000), kept(4000)))
            .idle
            .expect("idle");
        let (up, down) = (
            idle.one_way_up.expect("up"),
            idle.one_way_down.expect("down"),
        );
        assert_eq!((up.p50_ns, up.error_ns), (Some(10 * MS as i64), Some(7000)));
        assert_eq!(down.p50_ns, Some(3 * MS as i64));
    }

    #[test]
    fn loss_of_a_reflector_that_copies_numbers_has_no_direction() {
        let mut measured = measured(0, kept(0), kept(0));
        assert!(report(&measured).stamp.expect("stamp").lost_up.is_some());

        // The sender leaves out number 1.
        let indexed = (0_u32..).zip(&mut measured.probes);
        for (index, probe) in indexed {
            let sequence = if index == 0 { 0 } else { index + 1 };
            probe.answer = probe.answer.map(|answer| Answer { sequence, ..answer });
        }
        let report = report(&measured);
        let stamp = report.stamp.expect("stamp");
        assert_eq!(
            (stamp.sent, stamp.lost_up, stamp.lost_down),
            (700, None, None)
        );
        assert!(report.absent.contains_key(absent::LOSS_BY_DIRECTION));
    }

    #[test]
    fn measures_of_a_record_have_the_losses() {
        let report = report(&measured(0, kept(0), kept(0)));
        let measures = Trial::of_path(&report).measures;
        let losses = measures
            .iter()
            .filter(|measure| measure.name == MeasureName::LostShare);
        let ways: Vec<Way> = losses.clone().map(|measure| measure.way).collect();
        assert_eq!(ways, [Way::Forward, Way::Reverse, Way::Sum]);
        assert_eq!(
            losses.map(|measure| measure.value).fold(0.0, f64::max),
            1.0 / 7.0
        );
    }

    #[test]
    fn samples_begin_at_the_first_packet() {
        let series = stamp_samples(&measured(0, kept(0), kept(0)).probes);
        assert_eq!(series.sent_ns.first(), Some(&0));
        assert_eq!(series.rtt_ns.get(3), Some(&None));
        assert_eq!(series.rtt_ns.get(4), Some(&Some(13 * MS as i64)));
    }
}
