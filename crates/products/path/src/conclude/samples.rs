//! Single probes of an examination as columns.

use linerate_model::path::{PhaseResult, ProbeSample, SampleKind, SampleSeries};

use super::clock::Clock;
use super::{ConcludeInput, clock, without_impossible};

/// All probes and transactions, by phase and kind; without replies whose times are impossible.
pub fn samples(input: &ConcludeInput) -> Vec<SampleSeries> {
    let possible = without_impossible(input);
    let input = possible.as_ref().map_or(input, |(input, _)| input);
    let clock = clock(input);
    input
        .phases
        .iter()
        .flat_map(|phase| of_phase(phase, clock.as_ref()))
        .collect()
}

fn of_phase(phase: &PhaseResult, clock: Option<&Clock>) -> Vec<SampleSeries> {
    let first = [
        (SampleKind::Probe, &phase.udp),
        (SampleKind::TcpHandshake, &phase.foreign.tcp),
        (SampleKind::TlsHandshake, &phase.foreign.tls),
        (SampleKind::Echo, &phase.foreign.echo),
        (SampleKind::InBand, &phase.in_band),
        (SampleKind::Transaction, &phase.transactions),
    ];
    let first = first.into_iter().map(|(kind, probes)| (kind, None, probes));
    let further = phase
        .udp_by_dscp
        .iter()
        .map(|(dscp, probes)| (SampleKind::Probe, Some(*dscp), probes));
    let all = first
        .chain(further)
        .filter(|(_, _, probes)| !probes.is_empty());

    all.map(|(kind, dscp, probes)| series(phase, kind, dscp, probes, clock))
        .collect()
}

fn series(
    phase: &PhaseResult,
    kind: SampleKind,
    dscp: Option<u8>,
    probes: &[ProbeSample],
    clock: Option<&Clock>,
) -> SampleSeries {
    let since_start =
        // The sign holds the time of a probe that left before its phase began.
        |probe: &ProbeSample| probe.sent_ns.wrapping_sub(phase.started_ns).cast_signed();
    let ways: Vec<Option<(i64, i64)>> = probes
        .iter()
        .map(|probe| clock.and_then(|clock| clock.one_way_of(probe)))
        .collect();
    let one_way = |delay: fn((i64, i64)) -> i64| {
        if ways.iter().any(Option::is_some) {
            ways.iter().map(|ways| ways.map(delay)).collect()
        } else {
            Vec::new()
        }
    };
    SampleSeries {
        dscp,
        sent_ns: probes.iter().map(since_start).collect(),
        rtt_ns: probes.iter().map(ProbeSample::rtt_ns).collect(),
        up_ns: one_way(|(up, _)| up),
        down_ns: one_way(|(_, down)| down),
        ..SampleSeries::new(phase.spec.kind, kind)
    }
}
