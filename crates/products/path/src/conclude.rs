//! Report of the results of the phases of an examination.

mod ceiling;
mod clock;
mod convex_hull;
mod datagrams;
mod delays;
mod grade;
mod idle;
mod jitter;
mod load;
mod loss;
mod marks;
mod missing;
mod mos;
mod responsiveness;
mod samples;
mod series;
mod unmeasured;

use linerate_model::path::{
    Delay, LoadPhase, Marks, PathDirection, PathMtu, PathReport, PathSpec, PathState, PathTarget,
    PhaseKind, PhaseResult, ProbeKind, ProbeSample, RateLadder, Voice, absent as names,
};

pub use ceiling::CeilingFacts;
use clock::is_possible;
pub use clock::{Clock, ClockFacts};
pub use delays::round_trips;
use grade::grade;
pub use load::goodput_bps;
pub use loss::loss_by_place;
use marks::marks;
use missing::Absent;
pub(crate) use responsiveness::responsiveness_class;
pub use samples::samples;
use series::arrived_bytes;
use unmeasured::has_silent_direction;
pub use unmeasured::{is_partial, unmeasured};

/// Measurements, and facts beside them.
#[derive(Debug, Clone)]
pub struct ConcludeInput {
    /// The other end.
    pub target: PathTarget,
    /// Requested examination.
    pub spec: PathSpec,
    /// Completeness: whether all phases reached their end.
    pub state: PathState,
    /// From start to end in ns.
    pub elapsed_ns: u64,
    /// Number of times the control connection was established again.
    pub resumed: u32,
    /// Most other tests of the server at the same time; absent where it does not report them.
    pub concurrent_max: Option<u32>,
    /// Kind of the samples in [`PhaseResult::udp`].
    pub probe: ProbeKind,
    /// In the order in which they ran.
    pub phases: Vec<PhaseResult>,
    /// Searches for the highest rate.
    pub ladders: Vec<RateLadder>,
    /// Facts about the clocks beside the probes.
    pub clock: ClockFacts,
    /// Limits of the rate from server to client, its streams not counted.
    pub ceiling_down: CeilingFacts,
    /// Limits of the rate from client to server, its streams not counted.
    pub ceiling_up: CeilingFacts,
    /// Each figure that is absent, and why: what the plan left out, what the server refused.
    pub absent: Vec<(String, String)>,
}

impl ConcludeInput {
    fn phases_of(&self, kind: PhaseKind) -> impl Iterator<Item = &PhaseResult> {
        self.phases
            .iter()
            .filter(move |phase| phase.spec.kind == kind)
    }

    fn ceiling_facts(&self, direction: PathDirection) -> &CeilingFacts {
        match direction {
            PathDirection::Down => &self.ceiling_down,
            PathDirection::Up => &self.ceiling_up,
        }
    }
}

/// Values that all parts of a report depend on.
struct Context<'a> {
    input: &'a ConcludeInput,
    clock: Option<Clock>,
    idle_rtt: Option<Delay>,
}

/// Relation of the two clocks by all probes.
pub(super) fn clock(input: &ConcludeInput) -> Option<Clock> {
    let probes: Vec<ProbeSample> = input
        .phases
        .iter()
        .flat_map(|phase| phase.udp.iter().copied())
        .collect();
    Clock::from_probes(&probes, input.clock)
}

/// Makes a report. It depends on nothing but its input.
#[must_use]
pub fn conclude(input: &ConcludeInput) -> PathReport {
    let possible = without_impossible(input);
    let input = possible.as_ref().map_or(input, |(input, _)| input);
    let mut absent = Absent::default();
    input
        .absent
        .iter()
        .for_each(|(figure, reason)| absent.add(figure, reason));

    for phase in &input.phases {
        phase
            .absent
            .iter()
            .for_each(|(figure, reason)| absent.add_in(phase.spec.kind, figure, reason));
    }

    let clock = clock(input);
    let idle_rtt = idle::round_trip(input);
    let context = Context {
        input,
        clock,
        idle_rtt,
    };
    let phases: Vec<LoadPhase> = load::phases(&context, &mut absent);
    let idle = idle::idle(&context, &mut absent);
    let voice = voice_of(&context, &phases);
    let mut report = PathReport::new(input.state, input.spec.profile, input.target.clone());
    report.elapsed_ns = input.elapsed_ns;
    report.bytes_sent = series::bytes(input, PathDirection::Up);
    report.bytes_received = series::bytes(input, PathDirection::Down);
    report.concurrent_max = input.concurrent_max;
    report.resumed = input.resumed;
    report.clock = clock.map(|clock| clock.estimate());
    report.size = size(input);
    report.marks = path_marks(input);
    report.idle = idle;
    report.grade = grade(&added(&phases), input.probe);
    report.datagrams = datagrams::datagrams(&context, &mut absent);
    report.transactions = datagrams::transactions(input);
    report.ladders = input.ladders.clone();
    report.voice = voice;
    report.phases = phases;

    let impossible = possible.as_ref().map_or(0, |(_, count)| *count);
    let ignored = clock
        .map_or(0, |clock| clock.ignored())
        .saturating_add(impossible);
    if ignored > 0 {
        absent.add(
            names::PROBES,
            format!(
                "{ignored} replies are ignored: their times are impossible or contradict the others"
            ),
        );
    }

    explain(&report, &context, &mut absent);
    report.absent = absent.into_reasons(&input.phases);
    report
}

/// The input without probes whose times are impossible, and their number; `None` where there are
/// none.
pub(super) fn without_impossible(input: &ConcludeInput) -> Option<(ConcludeInput, u64)> {
    let wrong = |samples: &[ProbeSample]| {
        samples.iter().filter(|sample| !is_possible(sample)).count() as u64
    };
    let flows = input.phases.iter().flat_map(|phase| {
        phase
            .udp_by_dscp
            .iter()
            .map(|(_, samples)| samples.as_slice())
    });

    let count: u64 = input
        .phases
        .iter()
        .map(|phase| phase.udp.as_slice())
        .chain(flows)
        .map(wrong)
        .sum();
    if count == 0 {
        return None;
    }

    let mut input = input.clone();
    for phase in &mut input.phases {
        phase.udp.retain(is_possible);
        phase
            .udp_by_dscp
            .iter_mut()
            .for_each(|(_, samples)| samples.retain(is_possible));
    }

    Some((input, count))
}

fn direction_name(direction: PathDirection) -> &'static str {
    match direction {
        PathDirection::Down => "down",
        PathDirection::Up => "up",
    }
}

fn size(input: &ConcludeInput) -> PathMtu {
    let found = || input.phases.iter().flat_map(|phase| &phase.size);
    let of = |direction| {
        found()
            .filter(|(way, _)| *way == direction)
            .map(|(_, size)| *size)
            .next_back()
    };

    PathMtu {
        up: of(PathDirection::Up),
        down: of(PathDirection::Down),
    }
}

fn path_marks(input: &ConcludeInput) -> Option<Marks> {
    let tos: Vec<(PathDirection, u8, u8)> = input
        .phases
        .iter()
        .flat_map(|phase| phase.tos.iter().copied())
        .collect();
    marks(&tos)
}

/// Loads of one direction.
fn one_direction(phases: &[LoadPhase]) -> impl Iterator<Item = &LoadPhase> {
    phases
        .iter()
        .filter(|phase| matches!(phase.kind, PhaseKind::Down | PhaseKind::Up))
}

/// Increase of the delay by each load.
fn added(phases: &[LoadPhase]) -> Vec<(PhaseKind, Option<i64>)> {
    phases
        .iter()
        .map(|phase| (phase.kind, phase.added_p50_ns))
        .collect()
}

fn voice_of(context: &Context<'_>, phases: &[LoadPhase]) -> Option<Voice> {
    let measured = |kind| context.input.phases_of(kind);
    let idle_mos = measured(PhaseKind::Idle)
        .filter_map(|phase| idle::mos_of(context, &phase.udp))
        .reduce(f64::min);
    let loaded = one_direction(phases)
        .flat_map(|phase| measured(phase.kind))
        .filter(|phase| !has_silent_direction(phase));
    let loaded_mos = loaded
        .filter_map(|phase| idle::mos_of(context, load::in_window(phase, &phase.udp).as_slice()));
    let voice = Voice {
        idle_mos,
        loaded_mos: loaded_mos.reduce(f64::min),
    };

    (voice != Voice::default()).then_some(voice)
}

/// Reasons for what is absent and has none yet.
fn explain(report: &PathReport, context: &Context<'_>, absent: &mut Absent) {
    let has_probes = |phase: &PhaseResult| {
        matches!(
            phase.spec.kind,
            PhaseKind::Idle | PhaseKind::Down | PhaseKind::Up | PhaseKind::Both
        )
    };
    if report.clock.is_none() && context.input.phases.iter().any(has_probes) {
        absent.add(
            names::ONE_WAY_DELAY,
            "no probe bears the times of the other end",
        );
    }

    let has_load = one_direction(&report.phases).next().is_some();
    if report.grade.is_none() && has_load {
        let is_idle_known = context.idle_rtt.is_some_and(|rtt| rtt.p50_ns.is_some());
        let missing = if is_idle_known {
            "a load with enough probes"
        } else {
            "the delay without load"
        };
        absent.add(names::BUFFERBLOAT, format!("it needs {missing}"));
    }
}

#[cfg(test)]
mod tests;
