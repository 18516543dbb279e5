//! Report of the results of the phases of an examination.

mod ceiling;
mod clock;
mod convex_hull;
mod datagrams;
mod delays;
mod grade;
mod hops;
mod idle;
mod input;
mod jitter;
mod load;
mod loss;
mod marks;
mod missing;
mod mos;
mod responsiveness;
mod samples;
mod series;
mod stamp;
mod unmeasured;

use linerate_model::path::{
    CallQuality, LoadPhase, Marks, PathDirection, PathMtu, PathReport, PhaseKind, PhaseResult,
    absent as names,
};

pub use ceiling::CeilingFacts;
pub use clock::{Clock, ClockFacts};
pub use delays::round_trips;
use grade::grade;
pub use input::ConcludeInput;
use input::{Context, clock, without_impossible};
pub use load::goodput_bps;
pub use loss::loss_by_place;
use marks::marks;
use missing::Absent;
pub(crate) use responsiveness::responsiveness_class;
pub use samples::samples;
pub(crate) use stamp::{stamp, stamp_samples};
use unmeasured::has_silent_direction;
pub use unmeasured::{is_partial, unmeasured};

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
