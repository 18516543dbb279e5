//! What a report is made of.

use linerate_model::path::{
    Delay, PathDirection, PathSpec, PathState, PathTarget, PhaseKind, PhaseResult, ProbeKind,
    ProbeSample, RateLadder,
};

use super::ceiling::CeilingFacts;
use super::clock::{Clock, ClockFacts, is_possible};

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
    pub(super) fn phases_of(&self, kind: PhaseKind) -> impl Iterator<Item = &PhaseResult> {
        self.phases
            .iter()
            .filter(move |phase| phase.spec.kind == kind)
    }

    pub(super) fn ceiling_facts(&self, direction: PathDirection) -> &CeilingFacts {
        match direction {
            PathDirection::Down => &self.ceiling_down,
            PathDirection::Up => &self.ceiling_up,
        }
    }
}

/// Values that all parts of a report depend on.
pub(super) struct Context<'a> {
    pub(super) input: &'a ConcludeInput,
    pub(super) clock: Option<Clock>,
    pub(super) idle_rtt: Option<Delay>,
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
