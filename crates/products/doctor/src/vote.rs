//! The verdict over time: every slice votes with its length.

use linerate_model::finding::{Confidence, LimitPeriod, Verdict};

use crate::limit::{LONGER, Limit, limit_name};
use crate::verdict::{NO_LOAD, SLOW_START, UNKNOWN};

/// A limit that held for less than this is likely, and for less than [`HALF`] a guess.
const MOST: f64 = 0.8;
const HALF: f64 = 0.5;
/// Two limits whose parts of the time differ by less are undecided.
const CLEAR_LEAD: f64 = 0.2;
/// One slice has no spread.
const SLICES_MIN: usize = 2;

/// Combines the verdicts of the slices. `whole` is the verdict of the totals, whose text is used if
/// its name wins; slices without a verdict abstain. With too few samples to vote the verdict of the
/// totals has low confidence.
pub(crate) fn decide(whole: Verdict, votes: &[(f64, Verdict)], watched: bool) -> Verdict {
    if whole.verdict == NO_LOAD {
        return whole;
    }

    if votes.len() < SLICES_MIN {
        let mut decided = whole;
        if watched {
            decided.confidence = Confidence::Low;
        }
        return decided;
    }

    let timeline = limit_periods(votes);
    let steady = steady(votes);
    let all: f64 = steady.iter().map(|(seconds, _)| seconds).sum();
    let share = |seconds: f64| if all > 0.0 { seconds / all } else { 0.0 };
    let mut limits = limits(steady).map(|(seconds, verdict)| (share(seconds), verdict));
    let mut decided = match limits.next() {
        Some(winner) => ranked(whole, winner, limits.next()),
        None if whole.verdict == UNKNOWN => whole,
        None => unproven(&whole),
    };
    decided.timeline = timeline;

    decided
}

/// The verdict of the limit that held longest, with its share of the time, against the next one.
fn ranked(
    whole: Verdict,
    (share, winner): (f64, Verdict),
    second: Option<(f64, Verdict)>,
) -> Verdict {
    let mut verdict = if whole.verdict == winner.verdict {
        whole
    } else {
        winner
    };
    let mut sure = confidence(share);

    if let Some((part, rival)) = second {
        // The winner of a smaller lead changes from run to run of the same test.
        if share - part < CLEAR_LEAD {
            verdict.sentence = undecided(&verdict, &rival.verdict);
            sure = Confidence::Low;
        }

        verdict.runner_up = Some(format!(
            "{} ({} % of the time)",
            rival.verdict,
            percent(part)
        ));
        verdict.what_if = Some(format!("without it: {}", rival.sentence));
    }

    verdict.confidence = verdict.confidence.min(sure);
    verdict.share_of_time_percent = Some(percent(share));
    verdict
}

fn confidence(share: f64) -> Confidence {
    match share {
        share if share > MOST => Confidence::High,
        share if share > HALF => Confidence::Medium,
        _ => Confidence::Low,
    }
}

/// The sentence of two limits of about the same time, with the finding that the winner's sentence
/// names at its end.
fn undecided(winner: &Verdict, rival: &str) -> String {
    let experiment = Limit::of(rival).map_or(LONGER, |limit| limit.experiment);
    // The index is that of a space, so that the slice begins at a character.
    let named = winner
        .sentence
        .rfind(" (")
        .map_or("", |at| &winner.sentence[at..]);
    let winner = limit_name(&winner.verdict);
    let rival = limit_name(rival);
    format!("undecided between {winner} and {rival}: {experiment} to tell them apart{named}")
}

/// Limit for most of the time, where there is a vote.
pub(crate) fn winner(votes: &[(f64, Verdict)]) -> Option<String> {
    let is_enough = votes.len() >= SLICES_MIN;
    is_enough
        .then(|| limits(steady(votes)).next())
        .flatten()
        .map(|(_, verdict)| verdict.verdict)
}

/// The limits that are known, the longest first.
fn limits(votes: Vec<(f64, Verdict)>) -> impl Iterator<Item = (f64, Verdict)> {
    tally(votes)
        .into_iter()
        .filter(|(_, verdict)| verdict.verdict != UNKNOWN)
}

/// The slices after slow start; all where the test is no longer than that.
fn steady(votes: &[(f64, Verdict)]) -> Vec<(f64, Verdict)> {
    let steady: Vec<_> = votes
        .iter()
        .filter(|(_, vote)| vote.verdict != SLOW_START)
        .cloned()
        .collect();
    if steady.is_empty() {
        votes.to_vec()
    } else {
        steady
    }
}

/// Verdict that the totals suggest and no single interval shows.
fn unproven(whole: &Verdict) -> Verdict {
    Verdict {
        verdict: UNKNOWN.to_owned(),
        sentence: format!(
            "no interval shows a limit; the totals suggest that {}",
            whole.sentence
        ),
        runner_up: Some(whole.verdict.clone()),
        ..Verdict::default()
    }
}

/// Time per name, the longest first; of equals, the one that came first. Each with the surest
/// verdict of its name.
fn tally(votes: Vec<(f64, Verdict)>) -> Vec<(f64, Verdict)> {
    let mut tally: Vec<(f64, Verdict)> = Vec::new();
    for (seconds, vote) in votes {
        match tally
            .iter_mut()
            .find(|(_, known)| known.verdict == vote.verdict)
        {
            Some((sum, known)) => {
                *sum += seconds;
                if vote.confidence > known.confidence {
                    *known = vote;
                }
            }
            None => tally.push((seconds, vote)),
        }
    }

    // The sort is stable: of equals the first one stays the first.
    tally.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    tally
}

fn limit_periods(votes: &[(f64, Verdict)]) -> Vec<LimitPeriod> {
    let mut limit_periods: Vec<LimitPeriod> = Vec::new();
    for (seconds, vote) in votes {
        let length_ms = (seconds * 1e3).round().max(0.0) as u64;
        // The end of a test may be a slice of microseconds.
        if length_ms == 0 {
            continue;
        }

        match limit_periods
            .last_mut()
            .filter(|period| period.verdict == vote.verdict)
        {
            Some(period) => period.length_ms = period.length_ms.saturating_add(length_ms),
            None => limit_periods.push(LimitPeriod {
                load: None,
                verdict: vote.verdict.clone(),
                length_ms,
            }),
        }
    }

    limit_periods
}

fn percent(share: f64) -> u32 {
    // A float cast saturates.
    (share * 100.0).round().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str) -> Verdict {
        Verdict {
            verdict: name.to_owned(),
            sentence: format!("about {name}"),
            confidence: Confidence::High,
            ..Verdict::default()
        }
    }

    fn votes(names: &[(f64, &str)]) -> Vec<(f64, Verdict)> {
        names
            .iter()
            .map(|(seconds, name)| (*seconds, verdict(name)))
            .collect()
    }

    #[test]
    fn longest_limit_wins_and_the_next_is_runner_up() {
        let names = [
            (1.0, "slow-start"),
            (1.0, "receiver-cpu-app"),
            (1.0, "line-rate"),
            (1.0, "receiver-cpu-app"),
        ];
        let decided = decide(verdict("line-rate"), &votes(&names), true);
        assert_eq!(decided.verdict, "receiver-cpu-app");
        assert_eq!(
            (decided.share_of_time_percent, decided.confidence),
            (Some(67), Confidence::Medium)
        );
        assert_eq!(
            decided.runner_up.as_deref(),
            Some("line-rate (33 % of the time)")
        );

        let timeline: Vec<_> = decided
            .timeline
            .iter()
            .map(|period| (period.verdict.as_str(), period.length_ms))
            .collect();
        let expected = [
            ("slow-start", 1000),
            ("receiver-cpu-app", 1000),
            ("line-rate", 1000),
            ("receiver-cpu-app", 1000),
        ];
        assert_eq!(timeline, expected);
    }

    #[test]
    fn limits_of_about_the_same_time_are_undecided() {
        let named = |name: &str| {
            let mut verdict = verdict(name);
            verdict.sentence = format!("about {name} (CPU-01 on x)");
            verdict
        };
        let of = |seconds: [f64; 2]| {
            let votes: Vec<_> = seconds
                .into_iter()
                .zip(["sender-cpu", "path"].map(named))
                .collect();
            let decided = decide(named("sender-cpu"), &votes, true);
            (decided.sentence, decided.confidence)
        };

        let sentence = "undecided between the sender's CPU and the path: measure other hosts over \
                        the same path to tell them apart (CPU-01 on x)";
        assert_eq!(of([2.9, 2.1]), (sentence.to_owned(), Confidence::Low));
        assert_eq!(
            of([3.1, 1.9]),
            (
                "about sender-cpu (CPU-01 on x)".to_owned(),
                Confidence::Medium
            )
        );
    }

    #[test]
    fn time_counts_and_not_the_number_of_intervals() {
        let names = [
            (0.2, "flow-control"),
            (0.2, "flow-control"),
            (5.0, "sender-cpu"),
        ];
        let decided = decide(verdict("flow-control"), &votes(&names), true);
        assert_eq!(
            (decided.verdict.as_str(), decided.share_of_time_percent),
            ("sender-cpu", Some(93))
        );
        assert_eq!(decided.confidence, Confidence::High);
    }

    #[test]
    fn two_samples_without_spread_are_no_vote() {
        for votes in [Vec::new(), votes(&[(1.0, "line-rate")])] {
            let decided = decide(verdict("sender-cpu"), &votes, true);
            assert_eq!(
                (decided.verdict.as_str(), decided.confidence),
                ("sender-cpu", Confidence::Low)
            );
            assert_eq!(
                (decided.share_of_time_percent, decided.timeline.len()),
                (None, 0)
            );
        }

        // A pasted report has no samples of its own; its totals keep their confidence.
        assert_eq!(
            decide(verdict("line-rate"), &[], false),
            verdict("line-rate")
        );
    }

    #[test]
    fn slices_without_verdict_abstain_and_totals_alone_have_low_confidence() {
        let names = [(1.0, UNKNOWN), (1.0, UNKNOWN), (1.0, "policer")];
        let decided = decide(verdict("policer"), &votes(&names), true);
        assert_eq!(
            (decided.verdict.as_str(), decided.share_of_time_percent),
            ("policer", Some(33))
        );
        assert_eq!(
            decided.confidence,
            Confidence::Low,
            "a third of the time is a guess"
        );

        let decided = decide(
            verdict("nic-queue-tx"),
            &votes(&[(1.0, UNKNOWN), (1.0, UNKNOWN)]),
            true,
        );
        assert_eq!(
            (decided.verdict.as_str(), decided.runner_up.as_deref()),
            (UNKNOWN, Some("nic-queue-tx"))
        );

        let idle = decide(
            verdict(NO_LOAD),
            &votes(&[(1.0, "line-rate"), (1.0, "line-rate")]),
            true,
        );
        assert_eq!(idle.verdict, NO_LOAD);
    }
}
