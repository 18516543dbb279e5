//! Measures of a test of a path. Down is the direction [`Way::Reverse`], up is [`Way::Forward`].
//! [`Way::Sum`] is load in both directions at the same time, or a figure of the whole path.

use super::catalogue::{MeasureName as M, Unit};
use crate::path::{Datagrams, Delay, LoadPhase, PathDirection, PathReport, PhaseKind, absent};
use crate::record::{Measure, Way};
use crate::stored_name;

/// All measures of a report, in the order of the catalogue.
pub fn of_path(report: &PathReport) -> Vec<Measure> {
    let mut found = Measures::default();
    found.idle(report);
    found.stamp(report);

    for phase in &report.phases {
        found.load(phase);
    }

    for (direction, way) in [
        (PathDirection::Up, Way::Forward),
        (PathDirection::Down, Way::Reverse),
    ] {
        if let Some(datagrams) = paced(report, direction) {
            found.datagrams(datagrams, way);
        }
    }

    found.add(
        M::MtuBytes,
        Way::Forward,
        report.size.up.map(|size| f64::from(size.mtu)),
    );
    found.add(
        M::MtuBytes,
        Way::Reverse,
        report.size.down.map(|size| f64::from(size.mtu)),
    );
    let grade = report
        .grade
        .as_ref()
        .and_then(|grade| Unit::Grade.position(&grade.letter));
    found.add(M::BufferbloatGrade, Way::Sum, grade);
    found.add(
        M::LoadedMos,
        Way::Sum,
        report.voice.and_then(|call| call.loaded_mos),
    );
    found.add(
        M::ConcurrentTests,
        Way::Sum,
        report.concurrent_max.map(f64::from),
    );
    found
        .0
        .sort_by_key(|measure| (measure.name as usize, measure.way));

    found.0
}

#[derive(Default)]
struct Measures(Vec<Measure>);

impl Measures {
    fn add(&mut self, name: M, way: Way, value: Option<f64>) {
        let measure = |value| Measure {
            name,
            way,
            value,
            n: None,
            is_lower_bound: false,
        };
        self.0
            // JSON has no other numbers (RFC 8259 section 6).
            .extend(value.filter(|value| value.is_finite()).map(measure));
    }

    /// Percentiles of a delay under the names of 50, 90, 95 and 99 %.
    fn percentiles(&mut self, names: [M; 4], way: Way, delay: Option<&Delay>) {
        let Some(delay) = delay else { return };
        for (name, value) in
            names
                .into_iter()
                .zip([delay.p50_ns, delay.p90_ns, delay.p95_ns, delay.p99_ns])
        {
            let measure = |ns| Measure {
                name,
                way,
                value: ns as f64,
                n: Some(delay.n),
                is_lower_bound: false,
            };
            self.0.extend(value.map(measure));
        }
    }

    fn idle(&mut self, report: &PathReport) {
        let Some(idle) = &report.idle else { return };
        self.percentiles(IDLE, Way::Sum, idle.rtt.as_ref());

        for (way, delay) in [
            (Way::Forward, idle.one_way_up),
            (Way::Reverse, idle.one_way_down),
        ] {
            self.add(
                M::OneWayP50Ns,
                way,
                delay.and_then(|delay| delay.p50_ns).map(|ns| ns as f64),
            );
            self.add(
                M::OneWayP99Ns,
                way,
                delay.and_then(|delay| delay.p99_ns).map(|ns| ns as f64),
            );
        }

        self.add(M::JitterNs, Way::Sum, idle.jitter_ns.map(|ns| ns as f64));
    }

    fn stamp(&mut self, report: &PathReport) {
        let Some(stamp) = &report.stamp else { return };
        let rtt = report.idle.as_ref().and_then(|idle| idle.rtt);
        let arrived = stamp.sent.saturating_sub(stamp.lost_up.unwrap_or_default());
        for (way, lost, of) in [
            (Way::Forward, stamp.lost_up, stamp.sent),
            (Way::Reverse, stamp.lost_down, arrived),
            (Way::Sum, rtt.map(|rtt| rtt.lost), stamp.sent),
        ] {
            let lost = lost.filter(|_| of > 0);
            self.add(M::LostShare, way, lost.map(|lost| lost as f64 / of as f64));
        }
    }

    fn load(&mut self, phase: &LoadPhase) {
        let way = match phase.kind {
            PhaseKind::Down => Way::Reverse,
            PhaseKind::Up => Way::Forward,
            _ => Way::Sum,
        };
        let rate = if way == Way::Sum {
            M::BothReceivedBps
        } else {
            M::ReceivedBps
        };
        self.add(
            rate,
            Way::Forward,
            phase.up_bps.filter(|_| way != Way::Reverse),
        );
        self.add(
            rate,
            Way::Reverse,
            phase.down_bps.filter(|_| way != Way::Forward),
        );

        let retransmits = match way {
            Way::Forward => phase.up_retransmits,
            Way::Reverse => phase.down_retransmits,
            // The count of one direction is not that of both.
            Way::Sum => phase
                .up_retransmits
                .zip(phase.down_retransmits)
                .map(|(up, down)| up.saturating_add(down)),
        };
        self.add(M::Retransmits, way, retransmits.map(|count| count as f64));
        self.percentiles(LOADED, way, phase.rtt.as_ref());
        self.add(M::AddedRttNs, way, phase.added_p50_ns.map(|ns| ns as f64));
        self.add(M::ResponsivenessRpm, way, phase.rpm);
        self.add(
            M::CpuClientCores,
            way,
            phase.cpu_cores.map(|(here, _)| here),
        );
        self.add(
            M::CpuServerCores,
            way,
            phase.cpu_cores.and_then(|(_, there)| there),
        );
        self.add(
            M::Confidence,
            way,
            Unit::Confidence.position(&stored_name(phase.confidence)),
        );
    }

    fn datagrams(&mut self, datagrams: &Datagrams, way: Way) {
        let sent = datagrams.loss.sent;
        let received = datagrams.loss.received;
        let lost = (sent > 0).then(|| sent.saturating_sub(received) as f64 / sent as f64);
        self.add(M::LostShare, way, lost);
        self.add(M::ReorderedShare, way, Some(datagrams.reordered_share));
        self.add(M::JitterNs, way, datagrams.jitter_ns.map(|ns| ns as f64));
    }
}

const IDLE: [M; 4] = [
    M::IdleRttP50Ns,
    M::IdleRttP90Ns,
    M::IdleRttP95Ns,
    M::IdleRttP99Ns,
];
const LOADED: [M; 4] = [
    M::LoadedRttP50Ns,
    M::LoadedRttP90Ns,
    M::LoadedRttP95Ns,
    M::LoadedRttP99Ns,
];

/// Datagrams of a direction: of the phase `datagrams`, or of another one.
fn paced(report: &PathReport, direction: PathDirection) -> Option<&Datagrams> {
    let own = |datagrams: &&Datagrams| datagrams.direction == direction;
    let first = report
        .datagrams
        .iter()
        .filter(own)
        .find(|datagrams| datagrams.kind == PhaseKind::Datagrams);
    first.or_else(|| report.datagrams.iter().find(own))
}

/// Names that have a meaning for tests of a path only.
const NAMES: [(&str, M, Option<Way>); 13] = [
    ("rx", M::ReceivedBps, Some(Way::Reverse)),
    ("down", M::ReceivedBps, Some(Way::Reverse)),
    ("up", M::ReceivedBps, Some(Way::Forward)),
    ("both.down", M::BothReceivedBps, Some(Way::Reverse)),
    ("both.up", M::BothReceivedBps, Some(Way::Forward)),
    ("idle.p50", M::IdleRttP50Ns, Some(Way::Sum)),
    ("idle.p90", M::IdleRttP90Ns, Some(Way::Sum)),
    ("idle.p95", M::IdleRttP95Ns, Some(Way::Sum)),
    ("idle.p99", M::IdleRttP99Ns, Some(Way::Sum)),
    ("p50", M::LoadedRttP50Ns, None),
    ("p90", M::LoadedRttP90Ns, None),
    ("p95", M::LoadedRttP95Ns, None),
    ("p99", M::LoadedRttP99Ns, None),
];

/// Names beside those of the catalogue that have a meaning for tests of a path.
pub fn path_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().map(|(name, ..)| name)
}

/// The measure and the direction that a name denotes in a test of a path: `p99`, `down.p99`,
/// `rpm.up`, `loss`. Without a direction every one that was measured is meant. `None` for an
/// unknown name.
pub fn path_target(name: &str) -> Option<(M, Option<Way>)> {
    let exact = NAMES
        .into_iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, measure, way)| (measure, way));
    let plain = || Some((name.parse().ok()?, None));
    let before = || {
        name.split_once('.')
            .and_then(|(word, name)| Some((name, way(word)?)))
    };
    let behind = || {
        name.rsplit_once('.')
            .and_then(|(name, word)| Some((name, way(word)?)))
    };
    let of_way = || {
        let (name, way) = before().or_else(behind)?;
        let own = NAMES
            .into_iter()
            .find(|(known, _, way)| *known == name && way.is_none());
        let measure = own
            .map(|(_, measure, _)| measure)
            .or_else(|| name.parse().ok())?;
        Some((measure, Some(way)))
    };

    exact.or_else(plain).or_else(of_way)
}

fn way(word: &str) -> Option<Way> {
    match word {
        "down" | "reverse" => Some(Way::Reverse),
        "up" | "forward" => Some(Way::Forward),
        "both" => Some(Way::Sum),
        _ => None,
    }
}

/// Why a report lacks a measure; `None` where it does not have the reason.
pub fn why_absent(report: &PathReport, measure: M, way: Option<Way>) -> Option<String> {
    let reason = |key: &&str| report.absent.get(*key);
    keys(measure, way)
        .iter()
        .find_map(reason)
        .cloned()
        .or_else(|| why_no_percentile(report, measure, way))
}

/// Keys of [`PathReport::absent`] that explain a measure, the closest first.
fn keys(measure: M, way: Option<Way>) -> Vec<&'static str> {
    let load = match way {
        Some(Way::Forward) => PhaseKind::Up,
        Some(Way::Reverse) => PhaseKind::Down,
        Some(Way::Sum) => PhaseKind::Both,
        None => PhaseKind::Down,
    }
    .name();
    match measure {
        M::ReceivedBps => vec![absent::GOODPUT, load],
        M::BothReceivedBps => vec![absent::GOODPUT, PhaseKind::Both.name()],
        M::Retransmits => vec![absent::RETRANSMITS, load],
        M::Confidence => vec![load],
        measure if IDLE.contains(&measure) => vec![absent::IDLE_RTT, PhaseKind::Idle.name()],
        measure if LOADED.contains(&measure) => vec![absent::LOADED_RTT, load],
        M::AddedRttNs => vec![
            absent::LOADED_RTT,
            absent::IDLE_RTT,
            load,
            PhaseKind::Idle.name(),
        ],
        M::BufferbloatGrade => vec![
            absent::BUFFERBLOAT,
            absent::LOADED_RTT,
            absent::IDLE_RTT,
            load,
        ],
        M::ResponsivenessRpm => vec![absent::RESPONSIVENESS, load],
        M::LoadedMos => vec![absent::CALL, absent::LOADED_RTT, load],
        M::LostShare => vec![absent::DATAGRAMS, absent::LOSS_BY_DIRECTION],
        M::ReorderedShare | M::JitterNs => vec![absent::DATAGRAMS],
        M::OneWayP50Ns | M::OneWayP99Ns => vec![absent::ONE_WAY_DELAY, PhaseKind::Idle.name()],
        M::CpuServerCores => vec![absent::SERVER_FACTS, load],
        M::MtuBytes => match way {
            Some(Way::Reverse) => vec![absent::MTU_DOWN, PhaseKind::Size.name()],
            Some(Way::Forward) => vec![absent::MTU_UP, PhaseKind::Size.name()],
            _ => vec![absent::MTU_UP, absent::MTU_DOWN, PhaseKind::Size.name()],
        },
        _ => Vec::new(),
    }
}

/// Reason of a percentile that its samples do not determine.
fn why_no_percentile(report: &PathReport, measure: M, way: Option<Way>) -> Option<String> {
    let of_phase = |phase: &&LoadPhase| match way {
        Some(Way::Forward) => phase.kind == PhaseKind::Up,
        Some(Way::Sum) => phase.kind == PhaseKind::Both,
        Some(Way::Reverse) | None => phase.kind == PhaseKind::Down,
    };
    let delay = match measure {
        measure if IDLE.contains(&measure) => report.idle.as_ref()?.rtt?,
        measure if LOADED.contains(&measure) => report.phases.iter().find(of_phase)?.rtt?,
        _ => return None,
    };
    let probes = delay.n.saturating_add(delay.lost);

    Some(match delay.lost {
        0 => format!("{probes} probes are too few for this percentile"),
        lost => {
            format!("{lost} of {probes} probes were lost, or they are too few for this percentile")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Confidence;

    #[test]
    fn names_stand_for_a_measure_and_a_direction() {
        let rows = [
            ("down", M::ReceivedBps, Some(Way::Reverse)),
            ("rx", M::ReceivedBps, Some(Way::Reverse)),
            ("up", M::ReceivedBps, Some(Way::Forward)),
            ("rx.forward", M::ReceivedBps, Some(Way::Forward)),
            ("both.down", M::BothReceivedBps, Some(Way::Reverse)),
            ("both.up", M::BothReceivedBps, Some(Way::Forward)),
            ("idle.p50", M::IdleRttP50Ns, Some(Way::Sum)),
            ("idle.p99", M::IdleRttP99Ns, Some(Way::Sum)),
            ("p99", M::LoadedRttP99Ns, None),
            ("down.p99", M::LoadedRttP99Ns, Some(Way::Reverse)),
            ("up.p99", M::LoadedRttP99Ns, Some(Way::Forward)),
            ("both.p95", M::LoadedRttP95Ns, Some(Way::Sum)),
            ("added", M::AddedRttNs, None),
            ("grade", M::BufferbloatGrade, None),
            ("rpm", M::ResponsivenessRpm, None),
            ("rpm.down", M::ResponsivenessRpm, Some(Way::Reverse)),
            ("rpm.up", M::ResponsivenessRpm, Some(Way::Forward)),
            ("loss", M::LostShare, None),
            ("reorder", M::ReorderedShare, None),
            ("jitter", M::JitterNs, None),
            ("retr", M::Retransmits, None),
            ("mos", M::LoadedMos, None),
            ("mtu", M::MtuBytes, None),
            ("confidence", M::Confidence, None),
            (
                "loaded_rtt_p99_ns.reverse",
                M::LoadedRttP99Ns,
                Some(Way::Reverse),
            ),
        ];
        for (name, measure, way) in rows {
            assert_eq!(path_target(name), Some((measure, way)), "{name}");
        }

        for name in [
            "",
            "down.",
            "down.forward",
            "idle",
            "idle.p12",
            "down.up",
            "both.down.p99",
            "sideways.p99",
        ] {
            assert_eq!(path_target(name), None, "{name}");
        }
    }

    /// A bound is read in one unit, whatever kind of run it is held against.
    #[test]
    fn names_with_two_meanings_have_one_unit() {
        for (name, measure, _) in NAMES {
            let other: Option<M> = name.parse().ok();
            assert!(
                other.is_none_or(|other| other.info().unit == measure.info().unit),
                "{name}"
            );
        }
    }

    #[test]
    fn words_of_scales_are_those_of_the_report() {
        for confidence in [Confidence::Low, Confidence::Medium, Confidence::High] {
            let place = Unit::Confidence.position(&stored_name(confidence));
            assert_eq!(place, Some(f64::from(confidence as u8)));
        }
    }
}
