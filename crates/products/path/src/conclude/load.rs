//! Phases under load.

use linerate_model::numbers::rate as rate_text;
use linerate_model::path::{
    ConcurrentProbes, Confidence, Delay, EndpointPhase, LoadOutcome, LoadPhase, LoadWindow,
    PathDirection, PhaseKind, PhaseResult, ProbeSample, RateCeiling, SubflowRow, absent as names,
};
use linerate_model::units::ns_to_s;

use super::ceiling::{CeilingFacts, ceiling};
use super::delays::round_trips_if_any;
use super::loss::Implausible;
use super::missing::Absent;
use super::series::{self, rate, receiver, stream_bytes};
use super::unmeasured::has_silent_direction;
use super::{Context, idle};

/// A rate above this multiple of a link is not the rate of that link.
const LINK_SHARE_MAX: f64 = 1.2;

/// Reason for what a load in which a direction moved nothing does not show.
const SILENT: &str = "no byte arrived";

/// Part of a load that is its warm-up where nothing is known of how it was steered.
const WARM_UP_NS: u64 = 2_000_000_000;

/// Round trip from which slow start of one stream lasts into the part that counts.
const SHORT_SINGLE_RTT_NS: i64 = 100_000_000;

/// Loads in the order in which they ran.
pub(super) fn phases(context: &Context<'_>, absent: &mut Absent) -> Vec<LoadPhase> {
    let loads = context
        .input
        .phases
        .iter()
        .filter(|phase| !phase.spec.kind.load_directions().is_empty());
    loads
        .map(|phase| load_phase(context, phase, absent))
        .collect()
}

/// Probes that left in the part of a load that counts.
pub(super) fn in_window(phase: &PhaseResult, samples: &[ProbeSample]) -> Vec<ProbeSample> {
    let started_ns = series::started_ns(phase);
    let window = window(phase);
    let is_inside = |sample: &&ProbeSample| {
        let at_ns = sample.sent_ns.saturating_sub(started_ns);
        // The difference of an earlier probe saturates at 0, which the window may hold.
        sample.sent_ns >= started_ns && (window.start_ns..=window.end_ns).contains(&at_ns)
    };
    samples.iter().filter(is_inside).copied().collect()
}

fn load_phase(context: &Context<'_>, phase: &PhaseResult, absent: &mut Absent) -> LoadPhase {
    let kind = phase.spec.kind;
    let [down_bps, up_bps] = [PathDirection::Down, PathDirection::Up]
        .map(|way| direction_rate(context, phase, way, absent));

    let mut load = LoadPhase {
        streams: streams(phase),
        down_bps,
        up_bps,
        up_retransmits: retransmits(&phase.local, PathDirection::Up),
        down_retransmits: phase
            .remote
            .as_ref()
            .and_then(|remote| retransmits(remote, PathDirection::Down)),
        stream_info: phase.local.streams.clone(),
        // Both ends report the subflows that they send on.
        subflows: subflows(phase),
        series: series::merged(phase),
        cpu_cores: cpu_cores(phase),
        ..LoadPhase::new(kind, Confidence::Low)
    };

    // A load that is not the one that was to be: delays beside it are those of another load.
    if has_silent_direction(phase) {
        for figure in [names::RESPONSIVENESS, names::IN_BAND, names::LOADED_RTT] {
            absent.add_in(kind, figure, SILENT);
        }

        load.deviations = deviations(context, phase, false);
        return load;
    }

    let probes = in_window(phase, &phase.udp);
    let rtt = round_trips_if_any(&probes);
    let queues = context
        .clock
        .filter(|_| !probes.is_empty())
        .map(|clock| clock.queues(&probes));
    let foreign = foreign_in_window(phase);
    let in_band = in_window(phase, &phase.in_band);
    let responsiveness = idle::rpm_of(&foreign, &in_band);
    explain_rpm(
        phase,
        responsiveness.foreign.is_some(),
        responsiveness.own.is_some(),
        absent,
    );

    explain_added(context, phase, rtt, absent);
    LoadPhase {
        confidence: confidence(context, phase),
        deviations: deviations(context, phase, responsiveness.rpm.is_some()),
        single_stream_bps: single_stream(phase),
        ceiling: phase_ceiling(context, phase),
        rtt,
        added_p50_ns: rtt.and_then(|rtt| Some(rtt.p50_ns? - context.idle_p50_ns()?)),
        queue_up: queues.map(|(up, _)| up),
        queue_down: queues.map(|(_, down)| down),
        rpm: responsiveness.rpm,
        rpm_foreign: responsiveness.foreign,
        rpm_self: responsiveness.own,
        rpm_mean_rtt: responsiveness.mean_rtt,
        tcp: round_trips_if_any(&foreign.tcp),
        tls: round_trips_if_any(&foreign.tls),
        echo: round_trips_if_any(&foreign.echo),
        in_band: round_trips_if_any(&in_band),
        by_dscp: by_dscp(phase),
        rtt_series: series::round_trips(phase),
        ..load
    }
}

/// Segments that the senders of a direction sent again; `None` where no sender of it reports them.
fn retransmits(sender: &EndpointPhase, direction: PathDirection) -> Option<u64> {
    let streams = sender
        .streams
        .iter()
        .filter(|stream| stream.direction == Some(direction));
    let of_streams = streams.filter_map(|stream| stream.tcp.map(|tcp| tcp.retransmits));
    let of_subflows = subflows_of(sender, direction).map(|row| u64::from(row.retransmits));
    of_streams.chain(of_subflows).reduce(u64::saturating_add)
}

/// Subflows as their senders count them: the client's up, the server's down.
fn subflows(phase: &PhaseResult) -> Vec<SubflowRow> {
    let down = phase
        .remote
        .iter()
        .flat_map(|remote| subflows_of(remote, PathDirection::Down));
    down.chain(subflows_of(&phase.local, PathDirection::Up))
        .cloned()
        .collect()
}

fn subflows_of(end: &EndpointPhase, direction: PathDirection) -> impl Iterator<Item = &SubflowRow> {
    let is_of = move |row: &&SubflowRow| {
        end.streams
            .iter()
            .any(|stream| stream.stream == row.stream && stream.direction == Some(direction))
    };
    end.subflows.iter().filter(is_of)
}

/// Probes over new connections in the part that counts.
fn foreign_in_window(phase: &PhaseResult) -> ConcurrentProbes {
    let inside = |samples: &[ProbeSample]| in_window(phase, samples);
    let foreign = &phase.foreign;
    ConcurrentProbes {
        tcp: inside(&foreign.tcp),
        tls: inside(&foreign.tls),
        echo: inside(&foreign.echo),
    }
}

/// Part of the load that counts.
fn window(phase: &PhaseResult) -> LoadWindow {
    let end_ns = phase.local.elapsed_ns;
    let without_warm_up = LoadWindow {
        start_ns: WARM_UP_NS.min(end_ns / 2),
        end_ns,
    };
    phase
        .load
        .as_ref()
        .map_or(without_warm_up, |load| load.window)
}

/// Payload rate of a direction at its receiver over the part of a load that counts, bit/s; `None`
/// without a byte there: what arrived before it may have filled a buffer that is never read.
pub fn goodput_bps(phase: &PhaseResult, direction: PathDirection) -> Option<f64> {
    let found = rate(receiver(phase, direction), direction, window(phase));
    found.filter(|rate| *rate > 0.0)
}

/// Payload rate of a direction, where the phase loads it and the rate is plausible.
fn direction_rate(
    context: &Context<'_>,
    phase: &PhaseResult,
    direction: PathDirection,
    absent: &mut Absent,
) -> Option<f64> {
    let kind = phase.spec.kind;
    if !kind.load_directions().contains(&direction) {
        return None;
    }

    let mut lacks = |reason: &str| match kind {
        PhaseKind::Both => {
            absent.add_in(
                kind,
                names::GOODPUT,
                format!("{} of both: {reason}", direction.name()),
            );
        }
        _ => absent.add_in(kind, names::GOODPUT, reason),
    };
    let Some(found) = goodput_bps(phase, direction) else {
        let is_silent = series::arrived_bytes(phase, direction) == 0;
        lacks(if is_silent {
            SILENT
        } else {
            "no byte arrived in the part that counts"
        });
        return None;
    };
    match plausible(context, phase, direction, found) {
        Ok(()) => Some(at_most_its_rate(phase, found)),
        Err(reason) => {
            lacks(&reason.to_string());
            None
        }
    }
}

/// A rate within what the sender was allowed. A part of a load begins and ends anywhere between two
/// bursts, and what waited before it is received in it.
fn at_most_its_rate(phase: &PhaseResult, found_bps: f64) -> f64 {
    phase
        .spec
        .rate_bps
        // With -b 50M a second between two bursts had 69 Mbit/s.
        .map_or(found_bps, |rate| found_bps.min(rate as f64))
}

/// Compares a rate that the other end counted with what this end sent and with this end's link.
fn plausible(
    context: &Context<'_>,
    phase: &PhaseResult,
    direction: PathDirection,
    found_bps: f64,
) -> Result<(), Implausible> {
    let is_counted_there = direction == PathDirection::Up
        && phase
            .remote
            .as_ref()
            .is_some_and(|end| !end.load.is_empty());
    // This end's own counts need no comparison.
    if !is_counted_there {
        return Ok(());
    }

    let own = &phase.local.load;
    let acknowledged = series::last_bytes(own, direction);
    let sent = stream_bytes(phase, direction).max(acknowledged);
    let received = series::last_bytes(receiver(phase, direction), direction);
    if sent > 0 && received > sent {
        return Err(Implausible {
            found: format!("{received} B received"),
            limit: format!("{sent} B sent"),
        });
    }

    // What this end's kernel confirms is plausible on every link: the rate of a virtual one means
    // nothing.
    let confirmed_bps = rate(own, direction, window(phase)).unwrap_or_default();
    match context.input.ceiling_facts(direction).link_bps {
        Some(link_bps) if found_bps > LINK_SHARE_MAX * link_bps.max(confirmed_bps) => {
            Err(Implausible {
                found: rate_text(found_bps),
                limit: format!("a link of {}", rate_text(link_bps)),
            })
        }
        _ => Ok(()),
    }
}

/// Rate of one stream, of a phase with one direction that began with one.
fn single_stream(phase: &PhaseResult) -> Option<f64> {
    let direction = direction_of(phase.spec.kind)?;
    let found = rate(
        receiver(phase, direction),
        direction,
        phase.load.as_ref()?.single?,
    )?;
    Some(at_most_its_rate(phase, found))
}

/// Direction of a load that has one.
fn direction_of(kind: PhaseKind) -> Option<PathDirection> {
    match kind.load_directions() {
        [one] => Some(*one),
        _ => None,
    }
}

fn streams(phase: &PhaseResult) -> u32 {
    let counted = || phase.local.load.iter().map(|sample| sample.streams).max();
    phase
        .load
        .as_ref()
        .map(|load| load.streams)
        .or_else(counted)
        .unwrap_or_default()
}

fn phase_ceiling(context: &Context<'_>, phase: &PhaseResult) -> Option<RateCeiling> {
    let facts = context.input.ceiling_facts(direction_of(phase.spec.kind)?);
    let rate_bps = phase.spec.rate_bps.map(|bps| bps as f64).or(facts.rate_bps);
    let facts = CeilingFacts {
        streams: streams(phase),
        rate_bps,
        ..*facts
    };

    ceiling(&facts, context.idle_p50_ns())
}

/// Confidence of the load, at most medium where a part of it failed or other tests ran.
fn confidence(context: &Context<'_>, phase: &PhaseResult) -> Confidence {
    let steered = phase
        .load
        .as_ref()
        .map_or(Confidence::Low, |load| load.confidence);
    if context.input.has_other_tests() || notes(phase).next().is_some() {
        steered.min(Confidence::Medium)
    } else {
        steered
    }
}

/// Failures of a part of the phase, at either end.
fn notes(phase: &PhaseResult) -> impl Iterator<Item = &String> {
    phase
        .local
        .notes
        .iter()
        .chain(phase.remote.iter().flat_map(|end| &end.notes))
}

fn deviations(context: &Context<'_>, phase: &PhaseResult, has_rpm: bool) -> Vec<String> {
    let steered = phase
        .load
        .iter()
        .flat_map(|load: &LoadOutcome| load.deviations.iter().cloned());
    let is_slow = context.idle_p50_ns() > Some(SHORT_SINGLE_RTT_NS);
    let is_far = phase.remote.as_ref().is_none_or(|end| end.load.is_empty());

    let own = [
        // The echo of a message of ours replaces the HTTP request of the draft.
        (has_rpm, "native-echo"),
        (phase.spec.raw, "raw"),
        (context.input.has_other_tests(), "concurrent-tests"),
        (
            is_slow && single_stream(phase).is_some(),
            "single-stream-short",
        ),
        (phase.is_drained == Some(false), "queue-not-drained"),
        // Without the receiver's count: what its kernel acknowledged.
        (
            is_far && phase.spec.kind != PhaseKind::Down,
            "acknowledged-bytes",
        ),
    ];
    let own = own
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, name)| name.to_owned());
    steered.chain(own).chain(notes(phase).cloned()).collect()
}

fn explain_rpm(phase: &PhaseResult, has_foreign: bool, has_own: bool, absent: &mut Absent) {
    let kind = phase.spec.kind;
    let no_echo = if phase.spec.raw {
        "a load without frames bears no echo"
    } else {
        "no echo in the load's streams"
    };

    if !has_own {
        absent.add_in(kind, names::IN_BAND, no_echo);
    }

    match (has_foreign, has_own) {
        (false, _) => absent.add_in(
            kind,
            names::RESPONSIVENESS,
            "no complete probe over a new connection",
        ),
        (true, false) => absent.add_in(kind, names::RESPONSIVENESS, no_echo),
        (true, true) => {}
    }
}

/// Adds reasons for medians that the increase of the delay needs and that are absent.
fn explain_added(
    context: &Context<'_>,
    phase: &PhaseResult,
    rtt: Option<Delay>,
    absent: &mut Absent,
) {
    if rtt.is_none_or(|rtt| rtt.p50_ns.is_none()) {
        absent.add_in(
            phase.spec.kind,
            names::LOADED_RTT,
            "too few probes were answered under load",
        );
    }

    if context.idle_p50_ns().is_none() {
        absent.add(
            names::IDLE_RTT,
            "no probes, or too few answered ones, without load",
        );
    }
}

fn by_dscp(phase: &PhaseResult) -> Vec<(u8, Delay)> {
    let flows = phase.udp_by_dscp.iter();
    flows
        .filter_map(|(dscp, samples)| {
            Some((*dscp, round_trips_if_any(&in_window(phase, samples))?))
        })
        .collect()
}

/// CPUs that were busy on average with this process, and with that of the other end. An end without
/// CPU time did not count it.
fn cpu_cores(phase: &PhaseResult) -> Option<(f64, Option<f64>)> {
    let cores = |cpu_ns: u64, elapsed_ns: u64| {
        (elapsed_ns > 0 && cpu_ns > 0).then(|| ns_to_s(cpu_ns) / ns_to_s(elapsed_ns))
    };
    let remote = phase
        .remote
        .as_ref()
        .and_then(|end| cores(end.cpu_ns, end.elapsed_ns));
    Some((cores(phase.local.cpu_ns, phase.local.elapsed_ns)?, remote))
}
