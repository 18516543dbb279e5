//! The path without load, and calls over it.

use linerate_model::path::{
    ClockMethod, ConcurrentProbes, Delay, IdleDelays, PhaseKind, ProbeSample, absent as names,
};

use super::delays::{probe_jitter_ns, round_trips, round_trips_if_any};
use super::grade::{CallPath, Responsiveness, mos, responsiveness};
use super::missing::Absent;
use super::{ConcludeInput, Context, series};

/// Round trips of the idle phase.
pub(super) fn round_trip(input: &ConcludeInput) -> Option<Delay> {
    input
        .phases_of(PhaseKind::Idle)
        .find_map(|phase| round_trips_if_any(&phase.udp))
}

pub(super) fn idle(context: &Context<'_>, absent: &mut Absent) -> Option<IdleDelays> {
    let phase = context.input.phases_of(PhaseKind::Idle).next()?;
    let one_way = context.clock.map(|clock| clock.one_way(&phase.udp));

    let rpm = rpm_of(&phase.foreign, &[]).foreign;
    if rpm.is_none() {
        absent.add_in(
            PhaseKind::Idle,
            names::RESPONSIVENESS,
            "no complete probe over a new connection",
        );
    }

    let delays = IdleDelays {
        rtt: context.idle_rtt,
        one_way_up: one_way.map(|(up, _)| up),
        one_way_down: one_way.map(|(_, down)| down),
        tcp: round_trips_if_any(&phase.foreign.tcp),
        tls: round_trips_if_any(&phase.foreign.tls),
        echo: round_trips_if_any(&phase.foreign.echo),
        jitter_ns: probe_jitter_ns(&phase.udp),
        rpm,
        rtt_series: series::round_trips(phase),
    };

    Some(delays)
}

/// Responsiveness of new connections and of echoes in a load.
pub(super) fn rpm_of(foreign: &ConcurrentProbes, in_band: &[ProbeSample]) -> Responsiveness {
    let rtts = |samples: &[ProbeSample]| {
        samples
            .iter()
            .filter_map(ProbeSample::rtt_ns)
            .collect::<Vec<i64>>()
    };
    responsiveness(
        &rtts(&foreign.tcp),
        &rtts(&foreign.tls),
        &rtts(&foreign.echo),
        &rtts(in_band),
    )
}

/// Score of a call that meets what these probes met, in the worse direction. `None` where too few
/// of them arrived.
pub(super) fn mos_of(context: &Context<'_>, probes: &[ProbeSample]) -> Option<f64> {
    let rtt = round_trips(probes);
    let all = rtt.n.saturating_add(rtt.lost).max(1);
    let loss_share = rtt.lost as f64 / all as f64;

    let call = |one_way_ns: i64, variation_ns: i64| {
        mos(&CallPath {
            one_way_ns,
            variation_ns,
            loss_share,
        })
    };
    let Some(clock) = context.clock else {
        return Some(call(rtt.p50_ns? / 2, spread(&rtt)?));
    };
    let (up, down) = clock.one_way(probes);
    let (queue_up, queue_down) = clock.queues(probes);
    let is_related = clock.estimate().method != ClockMethod::Exchange;
    let scores = [(up, queue_up), (down, queue_down)].map(|(one_way, queue)| {
        // Bounds by probes alone are no closer than half of the round trip.
        let one_way_ns = if is_related {
            one_way.p50_ns
        } else {
            rtt.p50_ns.map(|ns| ns / 2)
        };
        Some(call(one_way_ns?, spread(&queue)?))
    });
    let [up, down] = scores;

    Some(up?.min(down?))
}

/// Variation of a delay. Few samples have no 99th percentile.
fn spread(delay: &Delay) -> Option<i64> {
    Some(delay.p99_ns.or(delay.p95_ns)?.saturating_sub(delay.p50_ns?))
}
