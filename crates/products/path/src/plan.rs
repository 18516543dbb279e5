//! Phases of an examination: which, in which order, how long, and what they may move.

mod capacity;
mod ladder;
mod saturation;

use std::time::Duration;

use linerate_model::path::absent::{IPERF3_ONLY, NDT7_ONLY};
use linerate_model::path::{
    Dialect, PathDirection, PathSpec, PhaseKind, PhaseSpec, PhaseTransport, Profile,
    TransactionSpec,
};

pub use capacity::CapacitySearch;
pub use ladder::{Ladder, LadderPlan, LadderStep};
pub use saturation::{LoadPlan, Saturation};

/// A phase that is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedPhase {
    /// Parameters that both ends agree on. The rate is absent where it depends on what was found
    /// before: see [`PlannedPhase::rate`].
    pub spec: PhaseSpec,
    /// Steering of its load; absent without load.
    pub load: Option<LoadPlan>,
    /// Rate of its datagrams.
    pub rate: DatagramRate,
}

/// Rate of the datagrams of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DatagramRate {
    /// None are sent on a schedule, or the phase looks for the rate.
    Free,
    /// This one, bit/s of IP packets.
    Fixed(u64),
    /// Half of the rate that was found in this direction.
    HalfOf(PathDirection),
    /// This number of datagrams per second.
    PerSecond(u32),
}

/// A test whose phases are known, with what it needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedTest {
    /// In the order in which they run.
    pub phases: Vec<PlannedPhase>,
    /// Phases that were wanted and cannot be run: name and reason.
    pub absent: Vec<(String, String)>,
    /// Streams that are open at the same time.
    pub streams: StreamsMax,
    /// Longest time of all phases with the connecting before them, in whole seconds.
    pub estimate_s: u64,
}

/// Most streams of one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamsMax {
    /// Streams of a load, per direction.
    pub loads: u32,
    /// Streams of requests and responses.
    pub transactions: u32,
}

/// Plans the phases of a test against a server of `dialect`.
pub fn plan(spec: &PathSpec, dialect: Dialect) -> PlannedTest {
    let mut planned = PlannedTest::default();
    for kind in wanted(spec) {
        if has_phase(dialect, kind) {
            planned.phases.extend(phases_of(kind, spec));
        } else {
            planned
                .absent
                .push((kind.name().to_owned(), only(dialect).to_owned()));
        }
    }

    share_budget(spec.bytes_max, &mut planned.phases);
    planned.streams = streams_max(&planned.phases);
    planned.estimate_s = estimate_s(&planned.phases);
    planned
}

fn streams_max(phases: &[PlannedPhase]) -> StreamsMax {
    let most = |has_transactions: bool| {
        let specs = phases.iter().map(|phase| &phase.spec);
        specs
            .filter(|spec| spec.kind.has_transactions() == has_transactions)
            .map(|spec| spec.streams_max)
            .max()
            .unwrap_or(0)
    };
    StreamsMax {
        loads: most(false),
        transactions: most(true),
    }
}

fn estimate_s(phases: &[PlannedPhase]) -> u64 {
    let phases: Duration = phases.iter().map(|phase| phase.spec.duration_max).sum();
    (CONNECT_MAX + phases).as_secs_f64().ceil() as u64
}

impl PlannedTest {
    /// Kinds of the phases, each once.
    pub fn kinds(&self) -> Vec<PhaseKind> {
        let mut kinds: Vec<PhaseKind> = self.phases.iter().map(|phase| phase.spec.kind).collect();
        // Phases of one kind are neighbours in the plan.
        kinds.dedup();
        kinds
    }

    /// Time by which all phases have ended, even on a path whose queues empty slowly: a tenth more
    /// than is announced.
    pub fn time_max(&self) -> Duration {
        Duration::from_millis(self.estimate_s.saturating_mul(1_100))
    }
}

/// The load of the first of these phases, shorter than planned where not enough time is left for
/// all of them: on a slow path queues of earlier loads take time to empty. It keeps half of its
/// time. `overrun` is how much longer than planned each load so far took; as much is expected of
/// those to come and of what follows them. `None` without load.
pub fn load_within(phases: &[PlannedPhase], left: Duration, overrun: Duration) -> Option<LoadPlan> {
    let load = phases.first()?.load?;
    let loads = phases.iter().filter(|phase| phase.load.is_some()).count();
    let planned: Duration = phases.iter().map(|phase| phase.spec.duration_max).sum();
    let needed = planned + overrun * u32::try_from(loads + 1).unwrap_or(u32::MAX);
    let shorter = load
        .duration_max
        .saturating_sub(needed.saturating_sub(left));
    let duration_max = shorter.max(load.duration_max / 2);

    Some(LoadPlan {
        duration_max,
        // A load that is shortened below its least time could not end as stable.
        duration_min: load.duration_min.min(duration_max),
        ..load
    })
}

impl PlannedPhase {
    /// Rate of its datagrams in bit/s of IP packets, given what the loads found. `packet_bytes` is
    /// the length of one of its IP packets. `None` where the rate is free, or depends on a rate
    /// that was not found.
    pub fn datagram_rate_bps(
        &self,
        down_bps: Option<f64>,
        up_bps: Option<f64>,
        packet_bytes: u32,
    ) -> Option<u64> {
        match self.rate {
            DatagramRate::Free => None,
            DatagramRate::Fixed(bps) => Some(bps),
            DatagramRate::HalfOf(PathDirection::Down) => half(down_bps),
            DatagramRate::HalfOf(PathDirection::Up) => half(up_bps),
            DatagramRate::PerSecond(n) => Some(u64::from(n) * u64::from(packet_bytes) * 8),
        }
    }
}

fn half(bps: Option<f64>) -> Option<u64> {
    // The cast saturates: no rate, a negative one and NaN become 0.
    bps.map(|bps| (bps / 2.0) as u64).filter(|bps| *bps > 0)
}

/// Headers of IP and UDP in bytes.
pub fn headers_bytes(is_ipv6: bool) -> u32 {
    // IPv6 has 40 bytes (RFC 8200 section 3), IPv4 has 20 without options, UDP has 8.
    if is_ipv6 { 48 } else { 28 }
}

/// Phases of the profile, or those that are named, without those that are not wanted.
fn wanted(spec: &PathSpec) -> impl Iterator<Item = PhaseKind> {
    PhaseKind::ALL.into_iter().filter(|kind| {
        let is_named = spec.only.contains(kind);
        let is_usual = spec.only.is_empty() && is_in_profile(*kind, spec.profile);
        (is_named || is_usual) && !spec.skip.contains(kind)
    })
}

fn is_in_profile(kind: PhaseKind, profile: Profile) -> bool {
    use PhaseKind as K;

    match profile {
        Profile::Quick | Profile::Draft09 => matches!(kind, K::Idle | K::Down | K::Up),
        Profile::Default | Profile::Thorough => {
            matches!(
                kind,
                K::Size | K::Idle | K::Down | K::Up | K::Both | K::Datagrams
            )
        }
    }
}

/// Loads and datagrams are tests of a server of iperf3, loads of one direction those of ndt7, and
/// delays are measured beside them.
fn has_phase(dialect: Dialect, kind: PhaseKind) -> bool {
    use PhaseKind as K;

    match dialect {
        Dialect::Native => true,
        Dialect::Ndt7 => matches!(kind, K::Idle | K::Down | K::Up),
        _ => matches!(kind, K::Idle | K::Down | K::Up | K::Both | K::Datagrams),
    }
}

/// Reason for what the protocol of a server does not have.
const fn only(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Ndt7 => NDT7_ONLY,
        _ => IPERF3_ONLY,
    }
}

/// Both ends trace the hops of the path while it runs.
fn has_hops(kind: PhaseKind) -> bool {
    matches!(kind, PhaseKind::Size | PhaseKind::Hops) || kind.has_probes()
}

/// Phases of one kind: one for each direction where the kind does not name it.
fn phases_of(kind: PhaseKind, spec: &PathSpec) -> Vec<PlannedPhase> {
    use PhaseKind as K;

    match kind {
        K::Datagrams | K::Pps | K::Pace | K::Capacity => [PathDirection::Down, PathDirection::Up]
            .map(|way| phase(kind, Some(way), spec))
            .into(),
        _ => vec![phase(kind, None, spec)],
    }
}

fn phase(kind: PhaseKind, direction: Option<PathDirection>, spec: &PathSpec) -> PlannedPhase {
    use PhaseKind as K;

    let duration_max = duration(kind, spec).min(PHASE_MAX);
    let has_load = !kind.load_directions().is_empty();
    let load = has_load.then(|| load_plan(kind, spec, duration_max));
    let has_transactions = kind.has_transactions();

    let streams_max = match load {
        Some(load) => load.streams_max,
        None if has_transactions => spec.streams.unwrap_or(1).min(STREAMS_MAX),
        None => 0,
    };
    let rate = datagram_rate(kind, direction, spec);
    let rate_bps = match rate {
        DatagramRate::Fixed(bps) => Some(bps),
        // `--rate` limits loads; a phase that looks for a rate ignores it.
        _ => spec.rate_bps.filter(|_| load.is_some()),
    };

    let spec = PhaseSpec {
        kind,
        direction,
        transport: if kind.is_udp() {
            PhaseTransport::Udp
        } else {
            spec.transport
        },
        streams_max,
        // One flow has the mark of the load; each further DSCP has a flow of its own.
        probe_flows: match kind {
            K::Hops => 0,
            _ => 1 + spec.probe_dscps.len() as u32,
        },
        duration_max,
        rate_bps,
        connections_per_s: None,
        datagram_bytes: datagram_bytes(kind),
        bytes_max: None,
        congestion: spec.congestion.clone(),
        dscp: spec.dscp,
        raw: spec.raw && load.is_some(),
        hops: has_hops(kind) && !spec.skip.contains(&K::Hops),
        transaction: has_transactions.then_some(TransactionSpec {
            request_bytes: spec.request_bytes,
            response_bytes: spec.response_bytes,
        }),
    };
    PlannedPhase { spec, load, rate }
}

/// Longest time of a phase, in s, for quick, default, thorough and draft-09.
fn profile_seconds(kind: PhaseKind) -> [u64; 4] {
    use PhaseKind as K;

    match kind {
        K::Size => [1, 1, 2, 1],
        K::Hops => [4, 4, 8, 4],
        K::Idle => [1, 2, 5, 2],
        K::Down | K::Up => [4, 8, 20, 60],
        K::Both => [4, 5, 12, 60],
        K::Datagrams => [1, 1, 5, 1],
        K::Rr | K::Crr | K::Pace => [2, 5, 10, 5],
        K::Cps | K::Pps => [5, 15, 30, 15],
        K::Capacity => [10; 4],
        K::Stamp => profile_seconds(K::Idle),
    }
}

fn duration(kind: PhaseKind, spec: &PathSpec) -> Duration {
    let of = |kind| {
        let seconds = profile_seconds(kind);
        Duration::from_secs(match spec.profile {
            Profile::Quick => seconds[0],
            Profile::Default => seconds[1],
            Profile::Thorough => seconds[2],
            Profile::Draft09 => seconds[3],
        })
    };
    let usual = of(kind);

    match spec.load {
        Some(load) if kind == PhaseKind::Stamp => load,
        // All loads are scaled alike.
        Some(load) if !kind.load_directions().is_empty() => {
            load.mul_f64(usual.as_secs_f64() / of(PhaseKind::Down).as_secs_f64())
        }
        _ => usual,
    }
}

fn load_plan(kind: PhaseKind, spec: &PathSpec, duration_max: Duration) -> LoadPlan {
    let direction = match kind.load_directions() {
        [one] => Some(*one),
        _ => None,
    };
    let is_draft = spec.profile == Profile::Draft09;
    // draft-09 has 5 s "for now, pending investigation"; draft-08 had 1 s.
    let interval = Duration::from_secs(if is_draft { 5 } else { 1 });

    let streams_max = spec
        .streams
        .unwrap_or(STREAMS_GROWN_MAX)
        .clamp(1, STREAMS_MAX);
    let single = match spec.profile {
        // The figure of one stream is that of one direction.
        _ if spec.streams.is_some() || direction.is_none() || is_draft => Duration::ZERO,
        Profile::Quick => Duration::from_secs(1),
        _ => Duration::from_secs(2),
    };

    let (first, step) = match spec.streams {
        // All streams that the user sets run from the start: RTT and RPM of a load that began with
        // one were those of one stream.
        Some(_) => (streams_max, 0),
        // INP and INC of the draft.
        None if is_draft => (1, 1),
        None => (STREAMS_STEP, STREAMS_STEP),
    };
    LoadPlan {
        direction,
        streams_start: if single.is_zero() {
            first.min(streams_max)
        } else {
            1
        },
        // The part with one stream leaves half of a short load to all of them.
        single: single.min(duration_max / 2),
        streams_next: first.min(streams_max),
        streams_step: step,
        streams_max,
        is_growing_until_stable: is_draft,
        interval,
        duration_min: LOAD_MIN.min(duration_max),
        duration_max,
        bytes_max: None,
    }
}

fn datagram_rate(
    kind: PhaseKind,
    direction: Option<PathDirection>,
    spec: &PathSpec,
) -> DatagramRate {
    let fixed = spec.rate_bps.map(DatagramRate::Fixed);
    match (kind, direction) {
        (PhaseKind::Datagrams, Some(way)) => fixed.unwrap_or(DatagramRate::HalfOf(way)),
        (PhaseKind::Pace, _) => fixed.unwrap_or(DatagramRate::PerSecond(PACE_PER_S)),
        _ => DatagramRate::Free,
    }
}

fn datagram_bytes(kind: PhaseKind) -> u32 {
    match kind {
        PhaseKind::Datagrams => DATAGRAM_BYTES,
        PhaseKind::Pps | PhaseKind::Pace => DATAGRAM_BYTES_MIN,
        PhaseKind::Capacity => CAPACITY_DATAGRAM_BYTES,
        _ => 0,
    }
}

/// Gives each phase its part of the budget, by what it would move on a path that is alike in both
/// directions.
fn share_budget(bytes_max: Option<u64>, phases: &mut [PlannedPhase]) {
    let Some(bytes_max) = bytes_max else { return };
    let all: u128 = phases.iter().map(parts).sum();

    for phase in phases.iter_mut().filter(|phase| ways(phase) > 0) {
        // Whole numbers: rounded parts of a budget could add up to more.
        let bytes = (u128::from(bytes_max) * parts(phase))
            // The divisor is 0 where no phase of the plan lasts: nothing is moved then.
            .checked_div(all * ways(phase))
            .unwrap_or_default();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        phase.spec.bytes_max = Some(bytes);
        phase.load = phase.load.map(|load| LoadPlan {
            bytes_max: Some(bytes),
            ..load
        });
    }
}

/// Weight of a phase in the budget: ms of half the rate of a direction.
fn parts(phase: &PlannedPhase) -> u128 {
    // A load and a search for capacity move what the path carries, datagrams half of it.
    let is_at_full_rate = phase.load.is_some() || phase.spec.kind == PhaseKind::Capacity;
    let halves = if is_at_full_rate { 2 } else { 1 };
    phase.spec.duration_max.as_millis() * halves * ways(phase)
}

/// Directions in which a phase moves data in bulk.
fn ways(phase: &PlannedPhase) -> u128 {
    match phase.spec.direction {
        Some(_) => 1,
        None => phase.spec.kind.load_directions().len() as u128,
    }
}

/// Most streams to which a load grows (draft-ietf-ippm-responsiveness-09: MNP).
const STREAMS_GROWN_MAX: u32 = 16;

/// Streams that join at a time.
const STREAMS_STEP: u32 = 4;

/// Most streams of a phase.
const STREAMS_MAX: u32 = 128;

/// Longest phase.
const PHASE_MAX: Duration = Duration::from_secs(3600);

/// A load does not end as stable before.
const LOAD_MIN: Duration = Duration::from_secs(5);

/// Time for connecting, TLS and the exchange of the first messages.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// Datagrams per second of `pace`.
const PACE_PER_S: u32 = 1000;

/// UDP payload of a datagram: fits, with the headers of IPv6, an MTU of 1448 and more.
const DATAGRAM_BYTES: u32 = 1400;

/// A datagram that is its header alone.
const DATAGRAM_BYTES_MIN: u32 = 32;

/// UDP payload of datagrams in the search for capacity (RFC 9097 section 8.1; the default of
/// obudpst below 1 Gbit/s).
const CAPACITY_DATAGRAM_BYTES: u32 = 1222;

#[cfg(test)]
mod tests;
