//! Search for the highest clean rate of connections or datagrams, open loop: each step has a
//! schedule of its own that does not wait for answers.

use linerate_model::numbers::digits;
use linerate_model::path::{PathDirection, PhaseKind, RateLadder};

/// Objective of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LadderPlan {
    /// `cps` or `pps`.
    pub kind: PhaseKind,
    /// Direction of datagrams.
    pub direction: Option<PathDirection>,
    /// First rate, per second.
    pub start_per_s: f64,
    /// Highest rate that is tried, per second.
    pub max_per_s: f64,
    /// Share that may fail in a clean step.
    pub failed_share_max: f64,
    /// Largest 99th percentile of a clean step in ns.
    pub p99_max_ns: Option<i64>,
}

impl LadderPlan {
    /// Connections per second: none may fail, and the 99th percentile of their delay may be twice
    /// that of the idle path.
    pub fn connections(idle_ns: Option<i64>) -> Self {
        Self {
            kind: PhaseKind::Cps,
            direction: None,
            start_per_s: 100.0,
            max_per_s: 1e6,
            failed_share_max: 0.0,
            p99_max_ns: idle_ns.map(|ns| ns.saturating_mul(2)),
        }
    }

    /// Datagrams per second: one in 1,000 may be lost.
    pub fn datagrams(direction: PathDirection) -> Self {
        Self {
            kind: PhaseKind::Pps,
            direction: Some(direction),
            start_per_s: 1000.0,
            max_per_s: 1e8,
            failed_share_max: 0.001,
            p99_max_ns: None,
        }
    }
}

/// Result of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct LadderStep {
    /// Begun or sent, per second.
    pub offered_per_s: f64,
    /// Share that failed, 0 to 1.
    pub failed_share: f64,
    /// 99th percentile of the delay from the planned moment, ns.
    pub p99_ns: Option<i64>,
    /// Where the first failure happened, as far as it is known: the accept queue, the sending host.
    pub place: Option<String>,
}

/// A search: doubles the rate until a step is not clean, then halves the distance.
#[derive(Debug, Clone)]
pub struct Ladder {
    plan: LadderPlan,
    steps: Vec<(f64, f64)>,
    clean: Option<f64>,
    unclean: Option<f64>,
    limit: Option<String>,
    is_over: bool,
}

/// Most steps of a search.
const STEPS_MAX: usize = 24;

/// The search ends when the lowest unclean rate is so close to the highest clean one.
const CLOSE_SHARE: f64 = 1.05;

/// A host that offers less than this part of the planned rate is itself the limit.
const OFFERED_SHARE_MIN: f64 = 0.95;

impl Ladder {
    /// A search at its start.
    pub fn new(plan: LadderPlan) -> Self {
        Self {
            plan,
            steps: Vec::new(),
            clean: None,
            unclean: None,
            limit: None,
            is_over: false,
        }
    }

    /// Rate of the next step per second; `None` when the search has ended.
    pub fn next_per_s(&self) -> Option<f64> {
        if self.is_over || self.steps.len() >= STEPS_MAX {
            return None;
        }

        match (self.clean, self.unclean) {
            (None, None) => Some(self.plan.start_per_s),
            (Some(clean), None) => {
                (clean < self.plan.max_per_s).then(|| (2.0 * clean).min(self.plan.max_per_s))
            }
            // The first rate is too high already: the search continues downwards.
            (None, Some(unclean)) => (unclean > 1.0).then_some(unclean / 2.0),
            (Some(clean), Some(unclean)) => {
                // Rates differ by factors: the geometric mean is the middle of both.
                (unclean > clean * CLOSE_SHARE).then(|| (clean * unclean).sqrt())
            }
        }
    }

    /// Takes the result of the step whose rate [`Ladder::next_per_s`] named.
    pub fn take(&mut self, step: &LadderStep) {
        let Some(planned) = self.next_per_s() else {
            return;
        };
        self.steps.push((step.offered_per_s, step.failed_share));

        if let Some(limit) = self.unclean_because(step) {
            self.unclean = Some(planned);
            self.limit = Some(limit);
        } else if step.offered_per_s < OFFERED_SHARE_MIN * planned {
            // A clean step before, which offered more, remains the result.
            self.clean = Some(step.offered_per_s.max(self.clean.unwrap_or(0.0)));
            self.limit = Some(format!(
                "this host offers at most {} per second",
                digits(step.offered_per_s)
            ));
            // A higher rate would not leave this host either.
            self.is_over = true;
        } else {
            self.clean = Some(planned);
        }
    }

    /// The search of a report.
    pub fn result(&self) -> RateLadder {
        RateLadder {
            highest: self.clean,
            limit: self.limit.clone(),
            ..RateLadder::new(self.plan.kind, self.plan.direction, self.steps.clone())
        }
    }

    /// A step whose failures and delay are within those of the plan.
    pub fn is_clean(&self, step: &LadderStep) -> bool {
        self.unclean_because(step).is_none()
    }

    fn unclean_because(&self, step: &LadderStep) -> Option<String> {
        let place = step
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!(": {place}"));
        // Not a number is not clean either.
        if step.failed_share.is_nan() || step.failed_share > self.plan.failed_share_max {
            return Some(format!(
                "{} % fail{place}",
                digits(100.0 * step.failed_share)
            ));
        }

        // Without a percentile, or a bound for it, the failures alone decide.
        let p99_ns = step.p99_ns?;
        let max_ns = self.plan.p99_max_ns?;
        let ms = |ns: i64| digits(ns as f64 / 1e6);
        (p99_ns > max_ns).then(|| {
            format!(
                "p99 of {} ms is above {} ms, twice that of the idle path",
                ms(p99_ns),
                ms(max_ns)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn search(plan: LadderPlan, path: impl Fn(f64) -> LadderStep) -> RateLadder {
        let mut ladder = Ladder::new(plan);
        while let Some(rate) = ladder.next_per_s() {
            ladder.take(&path(rate));
        }
        ladder.result()
    }

    fn step(offered_per_s: f64, failed_share: f64) -> LadderStep {
        LadderStep {
            offered_per_s,
            failed_share,
            p99_ns: None,
            place: None,
        }
    }

    #[test]
    fn the_highest_clean_rate_is_found_within_five_percent() {
        let found = search(LadderPlan::datagrams(PathDirection::Up), |rate| {
            step(rate, (1.0 - 150_000.0 / rate).max(0.0))
        });
        let highest = found.highest.expect("a clean rate");
        assert!((142_000.0..150_200.0).contains(&highest), "{highest}");
        assert!(found.limit.is_some_and(|limit| limit.contains("% fail")));
        assert_eq!(
            (found.kind, found.direction),
            (PhaseKind::Pps, Some(PathDirection::Up))
        );
    }

    #[test]
    fn delays_limit_connections() {
        let slow = |rate: f64| LadderStep {
            p99_ns: Some(if rate > 5000.0 { 9_000_000 } else { 3_000_000 }),
            ..step(rate, 0.0)
        };
        let found = search(LadderPlan::connections(Some(2_000_000)), slow);
        assert!(
            found
                .highest
                .is_some_and(|rate| (4700.0..=5000.0).contains(&rate)),
            "{found:?}"
        );

        let expected = "p99 of 9.00 ms is above 4.00 ms, twice that of the idle path";
        assert_eq!(found.limit.as_deref(), Some(expected));
    }

    #[test]
    fn a_refusal_names_its_place() {
        let refuse = |rate: f64| LadderStep {
            place: Some("accept queue".to_owned()),
            ..step(rate, if rate > 300.0 { 0.02 } else { 0.0 })
        };
        let found = search(LadderPlan::connections(None), refuse);
        assert_eq!(found.limit.as_deref(), Some("2.00 % fail: accept queue"));
    }

    #[test]
    fn a_host_that_cannot_offer_more_is_the_limit() {
        let found = search(LadderPlan::datagrams(PathDirection::Down), |rate| {
            step(rate.min(20_000.0), 0.0)
        });
        assert_eq!((found.highest, found.steps.len()), (Some(20_000.0), 6));
        assert!(found.limit.is_some_and(|limit| limit.contains("this host")));
    }

    #[test]
    fn a_path_that_is_never_clean_has_no_rate() {
        let found = search(LadderPlan::connections(None), |rate| step(rate, 1.0));
        assert_eq!(found.highest, None);
    }

    proptest! {
        #[test]
        fn a_search_ends(offered in prop::collection::vec((any::<f64>(), any::<f64>(), any::<Option<i64>>()), 1..20)) {
            let mut ladder = Ladder::new(LadderPlan::connections(Some(1_000_000)));
            let mut results = offered.iter().cycle();
            let mut steps = 0;
            while ladder.next_per_s().is_some() {
                let (offered_per_s, failed_share, p99_ns) = *results.next().expect("a cycle");
                ladder.take(&LadderStep { p99_ns, ..step(offered_per_s, failed_share) });
                steps += 1;
                prop_assert!(steps <= STEPS_MAX);
            }
        }
    }
}
