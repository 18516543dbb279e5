//! Searches for the highest rate: of connections and datagrams step by step, of IP packets by the
//! reports of their receiver.

use std::time::{Duration, Instant};

use linerate_engine::dialect::native::client::NativeError;
use linerate_model::path::{EndpointPhase, PathDirection, PhaseKind, PhaseResult, PhaseSpec};

use super::examination::Examination;
use super::native::NativePeer;
use crate::conclude::{loss_by_place, network_and_uncounted, round_trips, unmeasured};
use crate::plan::{CapacitySearch, Ladder, LadderPlan, LadderStep, headers_bytes};
use crate::report::PhaseProgress;

/// Steps that the time of a search is planned for.
const STEPS: u32 = 15;
/// Time of a step beside its datagrams or connections: opening, what is under way, the result.
const STEP_OVERHEAD: Duration = Duration::from_millis(500);
const STEP_MIN: Duration = Duration::from_millis(300);
const STEP_MAX: Duration = Duration::from_secs(2);
/// Connections per second of a path without load, and how long: enough for a 99th percentile.
const IDLE_PER_S: u64 = 300;
const IDLE_TIME: Duration = Duration::from_millis(1100);

/// What the steps of a ladder leave beside its result.
struct Climb {
    /// The step at the lowest rate that was not clean: it shows where datagrams are lost.
    unclean: Option<PhaseResult>,
    /// A step was not measured.
    has_failed: bool,
}

impl Examination<'_, NativePeer> {
    /// Runs the search of a phase.
    pub(super) fn run_search(
        &mut self,
        spec: &PhaseSpec,
        progress: &PhaseProgress,
    ) -> Result<(), NativeError> {
        match (spec.kind, spec.direction) {
            (PhaseKind::Capacity, Some(direction)) => self.run_capacity(spec, direction),
            _ => self.run_ladder(spec, progress),
        }
    }

    fn run_capacity(
        &mut self,
        spec: &PhaseSpec,
        direction: PathDirection,
    ) -> Result<(), NativeError> {
        let mut search = CapacitySearch::default();
        let mut result = PhaseResult::of(spec.clone());
        let ran =
            self.peer
                .client
                .run_steered_datagrams(spec, &mut search, self.interrupts, &mut result);
        let has_ended = ran.is_ok() && result.absent.is_empty();
        if let Some(reason) = unmeasured(&result).filter(|_| has_ended) {
            self.fail(spec.kind, &reason);
            return ran;
        }

        self.keep(result);
        if has_ended {
            self.input.ladders.push(search.result(direction));
        }

        ran
    }

    fn run_ladder(
        &mut self,
        spec: &PhaseSpec,
        progress: &PhaseProgress,
    ) -> Result<(), NativeError> {
        let end = Instant::now() + spec.duration_max;
        let Some(plan) = self.ladder_plan(spec)? else {
            return Ok(());
        };
        let mut ladder = Ladder::new(plan);
        let climb = self.climb(&mut ladder, spec, end, progress)?;
        let mut found = ladder.result();

        if ladder.next_per_s().is_some() && !climb.has_failed {
            let over = "the time of the search had passed";
            let limits = found.limit.as_deref().into_iter().chain([over]);
            found.limit = Some(limits.collect::<Vec<_>>().join("; "));
        }

        if let Some(reason) = climb
            .unclean
            .as_ref()
            .filter(|_| found.highest.is_none())
            .and_then(unmeasured)
        {
            self.fail(spec.kind, &reason);
            return Ok(());
        }

        self.input.phases.extend(climb.unclean);
        if !found.steps.is_empty() {
            self.input.ladders.push(found);
        }

        Ok(())
    }

    /// The rates to try; `None`, and the reason is kept, where connections without load are not
    /// measured: a step is compared with them.
    fn ladder_plan(&mut self, spec: &PhaseSpec) -> Result<Option<LadderPlan>, NativeError> {
        if let Some(direction) = spec.direction {
            return Ok(Some(LadderPlan::datagrams(direction)));
        }

        let idle = self.run_alone(&PhaseSpec {
            connections_per_s: Some(IDLE_PER_S),
            duration_max: IDLE_TIME,
            ..spec.clone()
        })?;
        if let Some(reason) = unmeasured(&idle) {
            self.fail(spec.kind, &reason);
            return Ok(None);
        }

        let p99_ns = round_trips(&idle.transactions).p99_ns;
        Ok(Some(LadderPlan::connections(p99_ns)))
    }

    /// Runs the steps of a ladder until it has its result, a step fails or `end` has passed.
    fn climb(
        &mut self,
        ladder: &mut Ladder,
        spec: &PhaseSpec,
        end: Instant,
        progress: &PhaseProgress,
    ) -> Result<Climb, NativeError> {
        let duration = (spec.duration_max / STEPS)
            .saturating_sub(STEP_OVERHEAD)
            .clamp(STEP_MIN, STEP_MAX);
        let mut unclean: Option<(f64, PhaseResult)> = None;
        let mut has_failed = false;

        while let Some(per_s) = ladder.next_per_s().filter(|_| Instant::now() < end) {
            if self.observers.progress.is_terminal() {
                let PhaseProgress { number, count, .. } = progress;
                self.observers.progress.update(&format!(
                    "{} {number}/{count}  {per_s:.0}/s",
                    spec.kind.name()
                ));
            }

            let step_spec = self.step_spec(spec, per_s, duration);
            let Some((step, result)) = self.run_step(ladder, &step_spec)? else {
                has_failed = true;
                break;
            };
            // The search halves its distance, so that a later step may have the lower rate.
            let is_lowest = unclean.as_ref().is_none_or(|(lowest, _)| per_s < *lowest);
            if !ladder.is_clean(&step) && is_lowest {
                unclean = Some((per_s, result));
            }

            ladder.take(&step);
        }

        self.observers.progress.clear();
        Ok(Climb {
            unclean: unclean.map(|(_, result)| result),
            has_failed,
        })
    }

    /// Runs a phase without load or further probes.
    fn run_alone(&mut self, spec: &PhaseSpec) -> Result<PhaseResult, NativeError> {
        let mut result = PhaseResult::of(spec.clone());
        self.peer
            .client
            .run_phase(spec, &[], None, self.interrupts, &mut result)?;

        Ok(result)
    }

    fn step_spec(&self, spec: &PhaseSpec, per_s: f64, duration_max: Duration) -> PhaseSpec {
        let whole = per_s.round().max(1.0) as u64;
        let headers = headers_bytes(self.remote.is_ipv6());
        let packet_bits = u64::from(spec.datagram_bytes + headers) * 8;
        let (rate_bps, connections_per_s) = match spec.direction {
            Some(_) => (Some(whole.saturating_mul(packet_bits)), None),
            None => (None, Some(whole)),
        };

        PhaseSpec {
            rate_bps,
            connections_per_s,
            duration_max,
            ..spec.clone()
        }
    }

    /// Runs a step, and a second time if it is not clean: a host that was busy for a moment is no
    /// limit of the path. `None` where there is no result; the reason is among the absent measures
    /// then.
    fn run_step(
        &mut self,
        ladder: &Ladder,
        spec: &PhaseSpec,
    ) -> Result<Option<(LadderStep, PhaseResult)>, NativeError> {
        let mut last = None;
        for _ in 0..2 {
            let result = self.run_alone(spec)?;
            let Some(step) = step_of(&result) else {
                if result.absent.is_empty() {
                    self.lack(spec.kind.name(), "a step has no result of both ends");
                }

                self.input.phases.push(result);
                return Ok(None);
            };
            let is_clean = ladder.is_clean(&step);
            last = Some((step, result));
            if is_clean {
                break;
            }
        }

        Ok(last)
    }
}

/// Result of a step; `None` without results of both ends that fit together.
fn step_of(result: &PhaseResult) -> Option<LadderStep> {
    match result.spec.direction {
        Some(direction) => datagrams(result, direction),
        None => connections(result),
    }
}

fn datagrams(result: &PhaseResult, direction: PathDirection) -> Option<LadderStep> {
    let remote = result.remote.as_ref()?;
    let (sender, receiver) = match direction {
        PathDirection::Down => (remote, &result.local),
        PathDirection::Up => (&result.local, remote),
    };
    let loss = loss_by_place(sender, receiver).ok()?;
    let seconds = sender.elapsed_ns as f64 / 1e9;

    let network = network_and_uncounted(&loss);
    let places = [
        (loss.sender, "sending host"),
        (Some(loss.network), &network),
        (loss.nic, "receiving host before the socket"),
        (loss.socket, "receive socket"),
    ];
    let most = places
        .into_iter()
        .max_by_key(|(count, _)| *count)
        .filter(|(count, _)| *count > Some(0));
    (loss.sent > 0 && seconds > 0.0).then(|| LadderStep {
        offered_per_s: loss.sent as f64 / seconds,
        failed_share: loss.sent.saturating_sub(loss.received) as f64 / loss.sent as f64,
        p99_ns: None,
        place: most.map(|(_, place)| format!("in the {place}")),
    })
}

fn connections(result: &PhaseResult) -> Option<LadderStep> {
    let all = result.transactions.len();
    let failed = result
        .transactions
        .iter()
        .filter(|sample| sample.received_ns.is_none())
        .count();

    let seconds = result.spec.duration_max.as_secs_f64();
    (all > 0).then(|| LadderStep {
        offered_per_s: all as f64 / seconds,
        failed_share: failed as f64 / all as f64,
        p99_ns: round_trips(&result.transactions).p99_ns,
        place: refused_at(&result.local, result.remote.as_ref()),
    })
}

/// Where connections were refused first, as far as counters of the hosts show it.
fn refused_at(here: &EndpointPhase, there: Option<&EndpointPhase>) -> Option<String> {
    let of = |end: Option<&EndpointPhase>, count: fn(&EndpointPhase) -> Option<u64>| {
        end.and_then(count).unwrap_or(0)
    };
    let places = [
        (
            of(there, |end| end.accept_queue_drops),
            "accept queue of the server",
        ),
        (
            of(there, |end| end.syn_queue_drops),
            "queue of half-open connections of the server",
        ),
        (
            of(there, |end| end.conntrack_drops),
            "connection tracking of the server",
        ),
        (
            of(Some(here), |end| end.conntrack_drops),
            "connection tracking of this host",
        ),
    ];
    let shown = places
        .into_iter()
        .find(|(count, _)| *count > 0)
        .map(|(_, place)| place.to_owned());

    // A note of this end is about its own connections; the counters hold all traffic of a host.
    here.notes.first().cloned().or(shown)
}

#[cfg(test)]
mod tests {
    use linerate_model::path::{PhaseTransport, ProbeSample};

    use super::*;

    fn spec(kind: PhaseKind, direction: Option<PathDirection>) -> PhaseSpec {
        PhaseSpec {
            kind,
            direction,
            transport: PhaseTransport::Udp,
            streams_max: 0,
            probe_flows: 0,
            duration_max: Duration::from_secs(2),
            rate_bps: None,
            connections_per_s: None,
            datagram_bytes: 32,
            bytes_max: None,
            congestion: None,
            dscp: 0,
            raw: false,
            hops: false,
            transaction: None,
        }
    }

    #[test]
    fn step_of_datagrams_has_the_place_of_most_losses() {
        let mut result = PhaseResult::of(spec(PhaseKind::Pps, Some(PathDirection::Up)));
        result.local = EndpointPhase {
            elapsed_ns: 2_000_000_000,
            datagrams_sent: 1000,
            qdisc_drops: Some(30),
            ..EndpointPhase::default()
        };
        assert_eq!(step_of(&result), None, "the other end sent no result");
        result.remote = Some(EndpointPhase {
            datagrams_received: 960,
            ..EndpointPhase::default()
        });

        let expected = LadderStep {
            offered_per_s: 500.0,
            failed_share: 0.04,
            p99_ns: None,
            place: Some("in the sending host".to_owned()),
        };
        assert_eq!(step_of(&result), Some(expected));
    }

    #[test]
    fn step_of_connections_counts_those_without_an_answer_and_names_the_queue() {
        let mut result = PhaseResult::of(spec(PhaseKind::Cps, None));
        let sample = |received_ns| ProbeSample {
            sent_ns: 1,
            peer_received_ns: None,
            peer_sent_ns: None,
            received_ns,
        };
        result.transactions = vec![
            sample(Some(5)),
            sample(Some(6)),
            sample(None),
            sample(Some(7)),
        ];
        result.remote = Some(EndpointPhase {
            accept_queue_drops: Some(0),
            syn_queue_drops: Some(3),
            ..EndpointPhase::default()
        });

        let step = step_of(&result).expect("a step");
        assert_eq!(
            (step.offered_per_s, step.failed_share, step.p99_ns),
            (2.0, 0.25, None)
        );
        assert_eq!(
            step.place.as_deref(),
            Some("queue of half-open connections of the server")
        );
    }
}
