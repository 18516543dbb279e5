//! Facts of runs from the load phases of a report.

use linerate_model::interval::{TcpInterval, TcpLimits};
use linerate_model::measure;
use linerate_model::path::{
    Delay, IdleDelays, LoadPhase, LoadSample, PathDirection, PathReport, PhaseKind, StreamTotals,
};
use linerate_model::snapshot::Value;
use linerate_model::units::{ns_to_s, rate_bps};

use super::packets::direction_name;
use crate::arithmetic::to_f64;
use crate::period::{Period, STEPS_MAX, TICKS_PER_SECOND};
use crate::timeline::{RunFacts, TestInterval, added_up, insert, median, shares, spread};

/// The name of a ceiling that is `--rate`.
const BY_USER: &str = "rate";

/// One direction of a load phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PathRun {
    /// The phase.
    pub phase: PhaseKind,
    /// Direction of the load.
    pub direction: PathDirection,
    /// Facts under their names without `run.N.`.
    pub facts: RunFacts,
    /// The rate of every second.
    pub intervals: Vec<TestInterval>,
}

/// Every direction of every load phase, in the order of the phases; of a phase in both directions
/// up first.
pub fn path_runs(report: &PathReport) -> Vec<PathRun> {
    let directions = |kind: PhaseKind| match kind {
        PhaseKind::Up => &[PathDirection::Up][..],
        PhaseKind::Down => &[PathDirection::Down],
        PhaseKind::Both => &[PathDirection::Up, PathDirection::Down],
        _ => &[],
    };
    let runs = report
        .phases
        .iter()
        .flat_map(|phase| directions(phase.kind).iter().map(move |way| (phase, *way)));
    runs.map(|(phase, direction)| {
        let seconds = seconds(&phase.series, direction);
        let facts = run_facts(report, phase, direction, &seconds);
        let intervals = seconds
            .into_iter()
            .map(|second| interval(&second))
            .collect();
        PathRun {
            phase: phase.kind,
            direction,
            facts,
            intervals,
        }
    })
    .collect()
}

fn run_facts(
    report: &PathReport,
    phase: &LoadPhase,
    direction: PathDirection,
    seconds: &[Second],
) -> RunFacts {
    let mut facts = RunFacts::new();
    let is_up = direction == PathDirection::Up;
    let name = direction_name(direction);
    let label = if phase.kind == PhaseKind::Both {
        format!("{name} of both")
    } else {
        name.to_owned()
    };
    let fixed: [(&str, Value); 7] = [
        ("tool", "linerate".into()),
        ("phase", phase.kind.name().into()),
        ("label", label.into()),
        ("transport", "tcp".into()),
        ("family", report.target.family.as_str().into()),
        ("reverse", (!is_up).into()),
        ("interrupted", false.into()),
    ];
    facts.extend(fixed.map(|(name, value)| (name.to_owned(), value)));

    // The report of a speed test does not have their number.
    let streams = Some(phase.streams).filter(|streams| *streams > 0);
    insert(&mut facts, "streams", streams);
    let cpu = phase.cpu_cores;
    let client = cpu.map(|(own, _)| own);
    let server = cpu.and_then(|(_, other)| other);
    let (sender, receiver) = if is_up {
        (client, server)
    } else {
        (server, client)
    };

    // A rate that the user set is that of all streams together.
    let of_user = phase
        .ceiling
        .as_ref()
        .filter(|ceiling| ceiling.by == BY_USER)
        .map(|ceiling| ceiling.rate_bps);
    let known: [(&str, Option<f64>); 6] = [
        (
            // Rules multiply the target by the number of streams.
            "target_bps",
            of_user.map(|rate| rate / f64::from(phase.streams.max(1))),
        ),
        ("received_bps", received_bps(phase, direction)),
        ("single_stream_bps", phase.single_stream_bps),
        (
            "ceiling_bps",
            phase.ceiling.as_ref().map(|ceiling| ceiling.rate_bps),
        ),
        ("sender_process_cpu", sender),
        ("receiver_process_cpu", receiver),
    ];
    set(&mut facts, known);
    addresses(&mut facts, &phase.stream_info);
    over_time(&mut facts, seconds);
    delays(&mut facts, report.idle.as_ref(), phase);
    let router_us = router_queue_us(report, phase, direction);
    insert(&mut facts, "hop_queue_us", router_us);

    let elapsed_ns = phase.series.last().map_or(0, |last| last.at_ns);
    if is_up {
        facts.extend(sender_facts(&phase.stream_info, direction, elapsed_ns));
        if report.size.up.is_none() {
            volumes(&mut facts, phase);
        }
    }

    facts
}

/// Delay of a queue that the hops of the path place at a router: neither host holds it.
fn router_queue_us(
    report: &PathReport,
    phase: &LoadPhase,
    direction: PathDirection,
) -> Option<f64> {
    let length = report.path.length()?;
    let is_alone = phase.kind.load_directions() == [direction];
    let queue = report.path.queues.iter().find(|queue| {
        let is_router = queue.first_hop >= 1 && queue.last_hop < length;
        is_alone && is_router && queue.direction == direction
    })?;
    Some(queue.added_ns as f64 / 1e3)
}

/// Volumes that this end sent and the server received. Where no packet sizes were probed they show
/// whether full-size packets pass.
fn volumes(facts: &mut RunFacts, phase: &LoadPhase) {
    let senders = phase
        .stream_info
        .iter()
        .filter(|stream| stream.direction == Some(PathDirection::Up));
    let sent = senders.fold(0_u64, |sum, stream| sum.saturating_add(stream.bytes));
    let received = phase.series.last().map(|last| last.up_bytes);
    insert(facts, "sent_bytes", Some(sent));
    insert(facts, "received_bytes", received);
}

/// Goodput; 0 of streams that carried nothing, which is a cause to look for and no rate for a
/// report.
fn received_bps(phase: &LoadPhase, direction: PathDirection) -> Option<f64> {
    let (found, bytes): (Option<f64>, fn(&LoadSample) -> u64) = match direction {
        PathDirection::Up => (phase.up_bps, |sample| sample.up_bytes),
        PathDirection::Down => (phase.down_bps, |sample| sample.down_bytes),
    };
    let is_silent = phase.series.last().is_some_and(|last| bytes(last) == 0);
    found.or(is_silent.then_some(0.0))
}

/// Adds what is known. A figure that is no number is not.
fn set<const N: usize>(facts: &mut RunFacts, known: [(&str, Option<f64>); N]) {
    for (name, value) in known {
        insert(facts, name, value.filter(|value| value.is_finite()));
    }
}

fn addresses(facts: &mut RunFacts, streams: &[StreamTotals]) {
    let ends = streams
        .iter()
        .find_map(|stream| stream.local.zip(stream.remote));
    if let Some((local, remote)) = ends {
        let mut ends = [local.ip().to_string(), remote.ip().to_string()];
        ends.sort_unstable();
        insert(facts, "path", Some(ends.join(" ")));
    }
}

/// Probes and new connections, with and without load.
fn delays(facts: &mut RunFacts, idle: Option<&IdleDelays>, phase: &LoadPhase) {
    let unloaded = idle.and_then(|idle| idle.rtt);
    let kinds = [
        (phase.tcp, idle.and_then(|idle| idle.tcp)),
        (phase.echo, idle.and_then(|idle| idle.echo)),
        (phase.tls, idle.and_then(|idle| idle.tls)),
    ];

    // With and without load the same part of a new connection is compared.
    let (foreign, foreign_idle) = kinds
        .into_iter()
        .find(|(loaded, _)| median_us(*loaded).is_some())
        .unwrap_or_default();
    let known = [
        ("rtt_idle_us", median_us(unloaded)),
        ("rtt_loaded_us", median_us(phase.rtt)),
        ("queue_up_us", median_us(phase.queue_up)),
        ("queue_down_us", median_us(phase.queue_down)),
        ("foreign_idle_us", median_us(foreign_idle)),
        ("foreign_us", median_us(foreign)),
        ("in_band_us", median_us(phase.in_band)),
        ("probe_loss_idle_share", unloaded.and_then(lost_share)),
        ("probe_loss_share", phase.rtt.and_then(lost_share)),
    ];
    set(facts, known);
}

#[expect(clippy::cast_precision_loss, reason = "a delay lasts seconds")]
fn median_us(delay: Option<Delay>) -> Option<f64> {
    delay?.p50_ns.map(|ns| ns as f64 / 1e3)
}

fn lost_share(delay: Delay) -> Option<f64> {
    let all = delay.n.saturating_add(delay.lost);
    (all > 0).then(|| to_f64(delay.lost) / to_f64(all))
}

/// One second of a load.
struct Second {
    start_ns: u64,
    end_ns: u64,
    rate_bps: f64,
}

/// The seconds of a load in one direction. What is left at its end is none.
fn seconds(series: &[LoadSample], direction: PathDirection) -> Vec<Second> {
    /// A sample may be a little early.
    const SECOND_NS: u64 = 950_000_000;

    let mut seconds = Vec::new();
    let mut start_ns = 0;
    let mut before = 0;

    for sample in series {
        let bytes = if direction == PathDirection::Up {
            sample.up_bytes
        } else {
            sample.down_bytes
        };
        let length_ns = sample.at_ns.saturating_sub(start_ns);
        if length_ns >= SECOND_NS && seconds.len() < STEPS_MAX {
            let rate_bps = rate_bps(bytes.saturating_sub(before), ns_to_s(length_ns));
            seconds.push(Second {
                start_ns,
                end_ns: sample.at_ns,
                rate_bps,
            });
            start_ns = sample.at_ns;
            before = bytes;
        }
    }

    seconds
}

fn interval(second: &Second) -> TestInterval {
    TestInterval {
        start_s: ns_to_s(second.start_ns),
        end_s: ns_to_s(second.end_ns),
        facts: [("received_bps".to_owned(), second.rate_bps.into())].into(),
    }
}

/// The rate over time. The streams of a load start one after the other, so its first seconds are no
/// start-up of one test.
fn over_time(facts: &mut RunFacts, seconds: &[Second]) {
    /// Moving averages that are stable, draft-ietf-ippm-responsiveness-09.
    const LAST: usize = 4;

    const LAST_MIN: usize = 3;

    let rates: Vec<f64> = seconds.iter().map(|second| second.rate_bps).collect();
    let length_s = seconds.last().map(|last| ns_to_s(last.end_ns));
    let [first, later @ ..] = rates.as_slice() else {
        return;
    };
    let last = later
        .get(later.len().saturating_sub(LAST)..)
        .unwrap_or_default();
    let end_spread = median(last)
        .filter(|_| last.len() >= LAST_MIN)
        .and_then(|middle| spread(last, middle));
    let later_spread = median(later).and_then(|middle| spread(later, middle));
    let omit_s = seconds.first().map(|first| ns_to_s(first.end_ns));
    let known = [
        ("seconds", length_s),
        ("omit_seconds", omit_s),
        ("first_second_bps", Some(*first)),
        ("later_median_bps", median(later)),
        ("later_spread", later_spread),
        ("end_spread", end_spread),
    ];
    set(facts, known);
}

/// Facts that the kernel of a sender reports about its streams of one direction, over a phase of
/// `elapsed_ns`. Empty without streams in that direction.
pub fn sender_facts(
    streams: &[StreamTotals],
    direction: PathDirection,
    elapsed_ns: u64,
) -> RunFacts {
    let mut facts = RunFacts::new();
    let senders: Vec<&StreamTotals> = streams
        .iter()
        .filter(|stream| stream.direction == Some(direction))
        .collect();
    let tcp: Vec<TcpInterval> = senders.iter().filter_map(|stream| stream.tcp).collect();
    let waiting = senders.iter().map(|stream| stream.notsent_bytes);
    let waiting = waiting
        .reduce(|sum, own| Some(sum?.saturating_add(own?)))
        .flatten();
    insert(&mut facts, "notsent_bytes", waiting);

    // A sum without one of the streams would be too low.
    if tcp.is_empty() || tcp.len() < senders.len() {
        return facts;
    }

    waited_for(&mut facts, &tcp, elapsed_ns);
    let sum = |of: fn(&TcpInterval) -> Option<u64>| {
        tcp.iter()
            .map(of)
            .try_fold(0_u64, |sum, own| Some(sum.saturating_add(own?)))
    };
    let repeated = sum(|tcp| Some(tcp.retransmits));
    let bytes = senders
        .iter()
        .fold(0_u64, |sum, stream| sum.saturating_add(stream.bytes));

    let positive = |found: Option<u32>| found.filter(|value| *value > 0);
    let mss = positive(tcp.iter().map(|tcp| tcp.mss_bytes).max());
    let rtt = positive(tcp.iter().map(|tcp| tcp.rtt_us).max());
    let least = positive(tcp.iter().filter_map(|tcp| tcp.min_rtt_us).min());
    let pmtu = positive(tcp.iter().map(|tcp| tcp.pmtu_bytes).min());
    let share = repeated
        .zip(mss)
        .and_then(|(repeated, mss)| measure::retransmit_share(repeated, bytes, mss));
    let inflation = rtt
        .zip(least)
        .map(|(rtt, least)| f64::from(rtt) / f64::from(least));
    for (name, count) in [
        ("retransmits", repeated),
        ("dsack_segments", sum(|tcp| tcp.dsack_segments)),
        ("reordered_segments", sum(|tcp| tcp.reorder_events)),
        ("snd_wnd_bytes", sum(|tcp| tcp.snd_wnd_bytes)),
        ("mss_bytes", mss.map(u64::from)),
        ("pmtu_bytes", pmtu.map(u64::from)),
        ("rtt_us", rtt.map(u64::from)),
        ("min_rtt_us", least.map(u64::from)),
    ] {
        insert(&mut facts, name, count);
    }

    insert(&mut facts, "retransmit_share", share);
    insert(&mut facts, "rtt_inflation", inflation);

    let congestion = senders
        .iter()
        .find_map(|stream| stream.congestion.as_deref());
    insert(&mut facts, "congestion", congestion);
    facts
}

/// Conditions that the senders waited for. Streams that start later cannot be busy all the time, so
/// the busiest one counts.
fn waited_for(facts: &mut RunFacts, tcp: &[TcpInterval], elapsed_ns: u64) {
    let limits: Option<Vec<TcpLimits>> = tcp.iter().map(|tcp| tcp.limits).collect();
    let Some(limits) = limits else { return };
    let busiest_us = limits
        .iter()
        .map(|limits| limits.busy_us)
        .max()
        .unwrap_or(0);

    shares(facts, Some(added_up(limits)), 0.0);
    if elapsed_ns > 0 && busiest_us > 0 {
        let busy = (to_f64(busiest_us) / (to_f64(elapsed_ns) / 1e3)).min(1.0);
        insert(facts, "busy_share", Some(busy));
        insert(facts, "idle_share", Some(1.0 - busy));
    }
}

/// Run time of the busiest thread of the program over a period, of one CPU; `None` where its
/// threads were not read.
pub(super) fn busiest_thread(period: &Period) -> Option<f64> {
    let is_ticks = |key: &str| key.starts_with("self.thread.") && key.ends_with(".ticks");
    let most = period
        .deltas()
        .filter(|(key, _)| is_ticks(key))
        .map(|(_, delta)| delta.value)
        .max()?;
    // CPU time is counted in ticks of 10 ms, so that the quotient can exceed 1.
    (period.seconds > 0.0).then(|| (to_f64(most) / TICKS_PER_SECOND / period.seconds).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_over_time_ends_with_the_spread_of_its_last_seconds() {
        let bytes = [
            5_000_000_u64,
            9_000_000,
            10_000_000,
            10_000_000,
            9_500_000,
            10_000_000,
        ];
        let mut down_bytes = 0;
        let samples = bytes.iter().zip(1_u64..).map(|(more, second)| {
            down_bytes += more;
            LoadSample {
                at_ns: second * 1_000_000_000,
                down_bytes,
                ..LoadSample::default()
            }
        });
        let seconds = seconds(&samples.collect::<Vec<_>>(), PathDirection::Down);
        let mut facts = RunFacts::new();
        over_time(&mut facts, &seconds);

        let number = |name: &str| facts.get(name).and_then(Value::number);
        assert_eq!(
            (number("first_second_bps"), number("later_median_bps")),
            (Some(40e6), Some(80e6))
        );

        // Of 80, 80, 76, 80 the median is 80.
        assert_eq!(
            (number("end_spread"), number("later_spread")),
            (Some(0.05), Some(0.1))
        );
        let mut short = RunFacts::new();
        over_time(&mut short, &seconds[..3]);
        assert_eq!(short.get("end_spread"), None, "two seconds have no spread");
    }

    #[test]
    fn senders_of_one_direction_are_added_up() {
        let stream = |direction, notsent_bytes, busy_us, rwnd_limited_us| {
            let tcp = TcpInterval {
                retransmits: 5,
                mss_bytes: 1448,
                rtt_us: 30_000,
                min_rtt_us: Some(10_000),
                limits: Some(TcpLimits {
                    busy_us,
                    rwnd_limited_us,
                    sndbuf_limited_us: 0,
                }),
                ..TcpInterval::default()
            };

            StreamTotals {
                direction: Some(direction),
                bytes: 1_448_000,
                notsent_bytes,
                tcp: Some(tcp),
                ..StreamTotals::default()
            }
        };
        let (up, down) = (PathDirection::Up, PathDirection::Down);
        let streams = [
            stream(up, Some(100), 8_000_000, 0),
            stream(up, Some(50), 4_000_000, 3_000_000),
            stream(down, None, 1, 1),
        ];
        let facts = sender_facts(&streams, up, 8_000_000_000);
        let number = |name: &str| facts.get(name).and_then(Value::number);
        assert_eq!(
            (number("notsent_bytes"), number("busy_share")),
            (Some(150.0), Some(1.0))
        );
        assert_eq!(
            (number("rwnd_limited_share"), number("rtt_inflation")),
            (Some(0.25), Some(3.0))
        );
        assert_eq!(
            (number("retransmits"), number("retransmit_share")),
            (Some(10.0), Some(0.005))
        );
        assert_eq!(
            sender_facts(&streams, down, 0).get("notsent_bytes"),
            None,
            "one stream did not report it"
        );
        assert_eq!(sender_facts(&[], up, 1), RunFacts::new());
    }
}
