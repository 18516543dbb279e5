//! Comparisons of measurements with thresholds. Their distance to the threshold is the confidence
//! of the match.

use linerate_model::http::units::{grouped, rounded};

use crate::rules::prelude::*;

/// Values this close to a threshold could as well lie on its other side.
const LOW: f64 = 0.03;
/// Values this close to a threshold are probably on their side of it.
const MEDIUM: f64 = 0.1;
/// The room above a threshold near 1 is scaled to this distance, so that a full link has a high
/// confidence.
const ROOM: f64 = 0.12;

/// A comparison that holds.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    evidence: Evidence,
    confidence: Confidence,
}

impl Condition {
    /// A comparison of shares or counts without a scale.
    pub(super) fn certain(text: impl Into<String>) -> Self {
        Self {
            evidence: Evidence::statement(text),
            confidence: Confidence::High,
        }
    }

    /// A missing measurement that could contradict the match.
    pub(super) fn unsure(text: impl Into<String>) -> Self {
        Self {
            confidence: Confidence::Low,
            ..Self::certain(text)
        }
    }

    /// Replaces the evidence by a statement of the same confidence.
    pub(super) fn stating(self, text: impl Into<String>) -> Self {
        Self {
            evidence: Evidence::statement(text),
            ..self
        }
    }

    fn compared(what: &str, share: f64, threshold: String, distance: f64) -> Self {
        Self {
            evidence: Evidence::new(what, rounded(share), threshold),
            confidence: match distance {
                distance if distance <= LOW => Confidence::Low,
                distance if distance <= MEDIUM => Confidence::Medium,
                _ => Confidence::High,
            },
        }
    }
}

/// Holds when a share is at least a threshold.
pub(super) fn at_least(what: &str, share: Option<f64>, threshold: f64) -> Option<Condition> {
    let share = share.filter(|share| *share >= threshold)?;
    let room = if threshold > 1.0 - ROOM && threshold < 1.0 {
        ROOM / (1.0 - threshold)
    } else {
        1.0
    };
    let distance = (share - threshold) * room;

    Some(Condition::compared(
        what,
        share,
        format!("at least {threshold}"),
        distance,
    ))
}

/// Holds when a share is less than a threshold.
pub(super) fn less_than(what: &str, share: Option<f64>, threshold: f64) -> Option<Condition> {
    let share = share.filter(|share| *share < threshold)?;
    let distance = threshold - share;
    Some(Condition::compared(
        what,
        share,
        format!("less than {threshold}"),
        distance,
    ))
}

/// Holds when something happened at all.
pub(super) fn happened(what: &str, count: Option<u64>) -> Option<Condition> {
    let count = count.filter(|count| *count > 0)?;
    Some(Condition {
        evidence: Evidence::new(what, grouped(count), ""),
        confidence: Confidence::High,
    })
}

/// Matches because of any of these conditions, each with its advice. The most certain one sets the
/// confidence.
pub(super) fn any(conditions: Vec<(Condition, String)>) -> Ruling {
    let confidence = conditions
        .iter()
        .map(|(condition, _)| condition.confidence)
        .max()
        .or_clear("none of its conditions holds")?;
    let found = conditions
        .into_iter()
        .fold(matched(), |found, (condition, advice)| {
            found
                .because_all(vec![condition.evidence])
                .also_advise(&advice)
        });
    Ok(found.cap(confidence))
}

impl Match {
    /// One more condition that has to hold.
    pub(super) fn and(self, condition: Condition) -> Self {
        self.because_all(vec![condition.evidence])
            .cap(condition.confidence)
    }

    /// Evidence that decides nothing.
    pub(super) fn note(self, text: String) -> Self {
        self.because_all(vec![Evidence::statement(text)])
    }

    /// One more piece of advice, unless it was given.
    pub(super) fn also_advise(self, advice: &str) -> Self {
        match &self.advice {
            Some(known) if known.contains(advice) => self,
            _ => self.advice(advice),
        }
    }
}
