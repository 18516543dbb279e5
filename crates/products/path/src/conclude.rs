//! Report of the results of the phases of an examination.

mod ceiling;
mod clock;
mod convex_hull;
mod datagrams;
mod delays;
mod grade;
mod hops;
mod idle;
mod load;
mod loss;
mod missing;
mod samples;
mod series;
mod stamp;
#[cfg(test)]
mod tests;
mod unmeasured;

use clock::is_possible;
use grade::grade;
use linerate_model::path::{
    CallQuality, Delay, LoadPhase, Marks, PathDirection, PathMtu, PathReport, PathSpec, PathState,
    PathTarget, PhaseKind, PhaseResult, ProbeKind, ProbeSample, RateLadder, absent as names,
};
use loss::marks;
use missing::Absent;
use unmeasured::has_silent_direction;

pub use ceiling::CeilingFacts;
pub use clock::{Clock, ClockFacts};
pub use delays::round_trips;
pub use load::goodput_bps;
pub use loss::loss_by_place;
pub(crate) use loss::network_and_uncounted;
pub use samples::samples;
pub use unmeasured::{is_partial, unmeasured};

pub(crate) use grade::responsiveness_class;
pub(crate) use stamp::{stamp, stamp_samples};

/// Makes a report. It depends on nothing but its input.
pub fn conclude(input: &ConcludeInput) -> PathReport {
    // One impossible time would move the clock, and with it every delay of one direction.
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
    let mut report = PathReport {
        elapsed_ns: input.elapsed_ns,
        bytes_sent: series::bytes(input, PathDirection::Up),
        bytes_received: series::bytes(input, PathDirection::Down),
        concurrent_max: input.concurrent_max,
        resumed: input.resumed,
        clock: clock.map(|clock| clock.estimate()),
        size: size(input),
        marks: path_marks(input),
        path: hops::hops(input, &phases),
        idle,
        grade: grade(&added(&phases), input.probe),
        datagrams: datagrams::datagrams(&context, &mut absent),
        transactions: datagrams::transactions(input),
        ladders: input.ladders.clone(),
        voice,
        phases,
        ..PathReport::new(input.state, input.spec.profile, input.target.clone())
    };

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

fn voice_of(context: &Context<'_>, phases: &[LoadPhase]) -> Option<CallQuality> {
    let measured = |kind| context.input.phases_of(kind);
    let idle_mos = measured(PhaseKind::Idle)
        .filter_map(|phase| idle::mos_of(context, &phase.udp))
        .reduce(f64::min);
    let loaded = one_direction(phases)
        .flat_map(|phase| measured(phase.kind))
        // Probes beside a direction without a byte show another load than the one that is named.
        .filter(|phase| !has_silent_direction(phase));
    let loaded_mos = loaded
        .filter_map(|phase| idle::mos_of(context, load::in_window(phase, &phase.udp).as_slice()));
    let voice = CallQuality {
        idle_mos,
        loaded_mos: loaded_mos.reduce(f64::min),
    };

    (voice != CallQuality::default()).then_some(voice)
}

/// Reasons for what is absent and has none yet.
fn explain(report: &PathReport, context: &Context<'_>, absent: &mut Absent) {
    let has_probes = |phase: &PhaseResult| phase.spec.kind.has_probes();
    if report.clock.is_none() && context.input.phases.iter().any(has_probes) {
        absent.add(
            names::ONE_WAY_DELAY,
            "no probe bears the times of the other end",
        );
    }

    let has_load = one_direction(&report.phases).next().is_some();
    if report.grade.is_none() && has_load {
        let is_idle_known = context.idle_p50_ns().is_some();
        let missing = if is_idle_known {
            "a load with enough probes"
        } else {
            "the delay without load"
        };
        absent.add(names::BUFFERBLOAT, format!("it needs {missing}"));
    }
}

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
    /// The rates are shared with other tests.
    fn has_other_tests(&self) -> bool {
        self.concurrent_max.is_some_and(|others| others > 0)
    }

    pub(super) fn phases_of(&self, kind: PhaseKind) -> impl Iterator<Item = &PhaseResult> {
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
pub(super) struct Context<'a> {
    pub input: &'a ConcludeInput,
    pub clock: Option<Clock>,
    pub idle_rtt: Option<Delay>,
}

impl Context<'_> {
    /// The median round trip without load.
    fn idle_p50_ns(&self) -> Option<i64> {
        self.idle_rtt?.p50_ns
    }
}

/// Relation of the two clocks by all probes.
pub(super) fn clock(input: &ConcludeInput) -> Option<Clock> {
    // The skew shows over the whole time of an examination, so that all phases count.
    let probes: Vec<ProbeSample> = input
        .phases
        .iter()
        .flat_map(|phase| phase.udp.iter().copied())
        .collect();
    Clock::from_probes(&probes, input.clock)
}

/// The input without probes whose times are impossible, and their number; `None` where there are
/// none.
fn without_impossible(input: &ConcludeInput) -> Option<(ConcludeInput, u64)> {
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
    // Without a wrong time, the usual case, the input is not copied.
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
