//! Bytes and round trips over time.

use linerate_model::path::{LoadSample, LoadWindow, PathDirection, PhaseResult, ProbeSample};
use linerate_model::units::{ns_to_s, rate_bps};

use super::ConcludeInput;

/// Most points of a series in a report.
const POINTS_MAX: usize = 6000;

fn bytes_of(sample: &LoadSample, direction: PathDirection) -> u64 {
    match direction {
        PathDirection::Down => sample.down_bytes,
        PathDirection::Up => sample.up_bytes,
    }
}

/// Bytes of a direction at the last sample.
pub(super) fn last_bytes(samples: &[LoadSample], direction: PathDirection) -> u64 {
    samples
        .last()
        .map_or(0, |sample| bytes_of(sample, direction))
}

/// Samples of the end that receives in this direction; those of this end where the other one sent
/// none.
pub(super) fn receiver(phase: &PhaseResult, direction: PathDirection) -> &[LoadSample] {
    match (&phase.remote, direction) {
        (Some(remote), PathDirection::Up) if !remote.load.is_empty() => &remote.load,
        _ => &phase.local.load,
    }
}

/// Bytes of a direction that arrived, by the samples of its receiver; without any, by the streams
/// of this end.
pub(super) fn arrived_bytes(phase: &PhaseResult, direction: PathDirection) -> u64 {
    match receiver(phase, direction).last() {
        Some(last) => bytes_of(last, direction),
        None => stream_bytes(phase, direction),
    }
}

/// Bytes of a direction at a time, linear between two samples; what was moved in all after the
/// last.
fn bytes_at(samples: &[LoadSample], direction: PathDirection, at_ns: u64) -> f64 {
    let behind = samples.partition_point(|sample| sample.at_ns <= at_ns);
    let before = behind
        .checked_sub(1)
        .and_then(|at| samples.get(at))
        .copied()
        .unwrap_or_default();
    let bytes = bytes_of(&before, direction) as f64;
    let Some(next) = samples.get(behind) else {
        return bytes;
    };
    let span = next.at_ns.saturating_sub(before.at_ns).max(1) as f64;
    let grown = bytes_of(next, direction).saturating_sub(bytes_of(&before, direction)) as f64;

    bytes + grown * at_ns.saturating_sub(before.at_ns) as f64 / span
}

/// Rate of a direction within a part of the load; `None` without samples there.
pub(super) fn rate(
    samples: &[LoadSample],
    direction: PathDirection,
    window: LoadWindow,
) -> Option<f64> {
    let last_ns = samples.last()?.at_ns;
    // Samples may end before the window: the rate is that of the time which they cover.
    let window = LoadWindow {
        start_ns: window.start_ns,
        end_ns: window.end_ns.min(last_ns),
    };
    let between = |start_ns: u64, end_ns: u64| {
        let seconds = ns_to_s(end_ns.checked_sub(start_ns).filter(|ns| *ns > 0)?);
        let bytes = bytes_at(samples, direction, end_ns) - bytes_at(samples, direction, start_ns);
        Some(rate_bps(bytes.max(0.0) as u64, seconds))
    };

    let first_bps = between(window.start_ns, window.end_ns)?;
    let [start_ns, end_ns] = without_stalls(samples, direction, window, first_bps);
    between(start_ns, end_ns)
}

/// Start and end of a window, moved inwards out of a stall.
///
/// A receiver that waits for a lost segment hands over nothing, and then all that arrived behind
/// it. A window that starts or ends between the two has a rate that the path never carried: with
/// CUBIC in a queue of 100 ms 98.0 Mbit/s of 95.6. At both ends the sample is taken that is
/// farthest ahead of the mean rate, which no stall has.
fn without_stalls(
    samples: &[LoadSample],
    direction: PathDirection,
    window: LoadWindow,
    mean_bps: f64,
) -> [u64; 2] {
    /// Recovery of a loss takes some round trips.
    const STALL_NS: u64 = 500_000_000;

    let span_ns = (window.end_ns.saturating_sub(window.start_ns) / 4).min(STALL_NS);
    let farthest_ahead = |edge_ns: u64, first_ns: u64, last_ns: u64| {
        let ahead_bytes =
            |at_ns: &u64| bytes_at(samples, direction, *at_ns) - mean_bps / 8.0 * ns_to_s(*at_ns);
        let near = samples
            .iter()
            .map(|sample| sample.at_ns)
            .filter(|at_ns| (first_ns..=last_ns).contains(at_ns));
        near.chain([edge_ns])
            .max_by(|one, other| ahead_bytes(one).total_cmp(&ahead_bytes(other)))
            .unwrap_or(edge_ns)
    };

    let start_ns = window.start_ns;
    let end_ns = window.end_ns;
    [
        farthest_ahead(start_ns, start_ns, start_ns.saturating_add(span_ns)),
        farthest_ahead(end_ns, end_ns.saturating_sub(span_ns), end_ns),
    ]
}

/// Load over time with each direction's bytes at its receiver.
pub(super) fn merged(phase: &PhaseResult) -> Vec<LoadSample> {
    let up = receiver(phase, PathDirection::Up);
    let at = |sample: &LoadSample| LoadSample {
        up_bytes: bytes_at(up, PathDirection::Up, sample.at_ns) as u64,
        ..*sample
    };
    let step = phase.local.load.len().div_ceil(POINTS_MAX).max(1);
    phase.local.load.iter().step_by(step).map(at).collect()
}

/// Round trips over time since the start of the phase. Of more points than a report holds, those next to each other become the
/// worst of them.
pub(super) fn round_trips(phase: &PhaseResult) -> Vec<(u64, Option<i64>)> {
    round_trips_of(&phase.udp, started_ns(phase))
}

/// Round trips over time since `started_ns`.
pub(super) fn round_trips_of(probes: &[ProbeSample], started_ns: u64) -> Vec<(u64, Option<i64>)> {
    let size = probes.len().div_ceil(POINTS_MAX).max(1);
    let point = |samples: &[ProbeSample]| {
        let first = samples.first()?;
        // A lost probe is the worst of its neighbours.
        let rtts: Option<Vec<i64>> = samples.iter().map(|sample| sample.rtt_ns()).collect();
        let at_us = first.sent_ns.saturating_sub(started_ns) / 1000;
        Some((
            // The digits of nanoseconds take a tenth of a page and are below the error of a probe.
            at_us * 1000,
            rtts.and_then(|rtts| rtts.into_iter().max()),
        ))
    };
    probes.chunks(size).filter_map(point).collect()
}

/// Start of the phase on the clock of its probes. Where it is not known, the first of them.
pub(super) fn started_ns(phase: &PhaseResult) -> u64 {
    let first = || {
        phase
            .udp
            .iter()
            .chain(&phase.in_band)
            .chain(&phase.foreign.tcp)
            .map(|sample| sample.sent_ns)
            .min()
    };
    Some(phase.started_ns)
        .filter(|ns| *ns > 0)
        .or_else(first)
        .unwrap_or_default()
}

/// Payload of all phases in a direction, as this end counts it.
pub(super) fn bytes(input: &ConcludeInput, direction: PathDirection) -> u64 {
    input
        .phases
        .iter()
        .map(|phase| phase_bytes(phase, direction))
        .fold(0, u64::saturating_add)
}

fn phase_bytes(phase: &PhaseResult, direction: PathDirection) -> u64 {
    let datagrams = match direction {
        PathDirection::Down => phase.local.datagrams_received,
        PathDirection::Up => phase.local.datagrams_sent,
    };
    let datagram_bytes = datagrams.saturating_mul(u64::from(phase.spec.datagram_bytes));

    let streamed = last_bytes(&phase.local.load, direction);
    streamed
        // Samples and totals of the streams count the same bytes; the later count is the larger.
        .max(stream_bytes(phase, direction))
        .saturating_add(datagram_bytes)
}

/// Payload of this end's streams of a direction.
pub(super) fn stream_bytes(phase: &PhaseResult, direction: PathDirection) -> u64 {
    let streams = phase
        .local
        .streams
        .iter()
        .filter(|stream| stream.direction == Some(direction));
    streams
        .map(|stream| stream.bytes)
        .fold(0, u64::saturating_add)
}
