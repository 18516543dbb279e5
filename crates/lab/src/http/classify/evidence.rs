//! Comparisons a verdict rests on, and how sure they make it.

use linerate_model::http::{Confidence, Evidence, Judgement, VerdictClass};

use crate::http::units::{grouped, rounded};

/// Values this close to a threshold could as well lie on its other side.
const LOW: f64 = 0.03;
/// Values this close to a threshold are probably on their side of it.
const MEDIUM: f64 = 0.1;
/// Above a threshold near 1 there is little room. All of it counts as this much, so that a full link is a sure thing.
const ROOM: f64 = 0.12;

/// What a rule found.
pub(super) enum RuleResult {
    /// It does not fit.
    NoMatch,
    /// A figure it needs is missing: why.
    Unknown(String),
    /// Something that is no part of the test hides whether it fits.
    Masked {
        /// What, in words with values.
        reason: String,
        /// What to do about it.
        advice: String,
    },
    /// It fits.
    Matched(Match),
}

impl RuleResult {
    pub(super) fn matched(&self) -> Option<&Match> {
        match self {
            Self::Matched(fit) => Some(fit),
            Self::NoMatch | Self::Unknown(_) | Self::Masked { .. } => None,
        }
    }
}

/// A comparison that holds.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    text: String,
    /// Distance to the threshold; 1 where there is none, as of counts.
    distance: f64,
}

impl Condition {
    /// A comparison of shares or counts without a scale.
    pub(super) fn certain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            distance: 1.0,
        }
    }

    /// A figure that is missing and would have to speak against the verdict.
    pub(super) fn unsure(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            distance: 0.0,
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
    Some(Condition {
        text: format!("{what} {}, at least {threshold}", rounded(share)),
        distance: (share - threshold) * room,
    })
}

/// Holds when a share is less than a threshold.
pub(super) fn less_than(what: &str, share: Option<f64>, threshold: f64) -> Option<Condition> {
    let share = share.filter(|share| *share < threshold)?;
    Some(Condition {
        text: format!("{what} {}, less than {threshold}", rounded(share)),
        distance: threshold - share,
    })
}

/// Holds when something happened at all.
pub(super) fn happened(what: &str, count: u64) -> Option<Condition> {
    (count > 0).then(|| Condition::certain(format!("{what}: {}", grouped(count))))
}

/// A rule that fits: its class, what it rests on and what to do.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) class: VerdictClass,
    texts: Vec<String>,
    advice: Vec<String>,
    distance: f64,
}

impl Match {
    pub(super) fn new(class: VerdictClass, advice: impl Into<String>) -> Self {
        Self {
            class,
            texts: Vec::new(),
            advice: vec![advice.into()],
            distance: 1.0,
        }
    }

    /// A class that fits because of any of these; none of them and it does not. The surest of them counts.
    pub(super) fn any(class: VerdictClass, conditions: Vec<(Condition, String)>) -> Option<Self> {
        let distance = conditions
            .iter()
            .map(|(condition, _)| condition.distance)
            .reduce(f64::max)?;
        let mut fit = Self {
            class,
            texts: Vec::new(),
            advice: Vec::new(),
            distance,
        };
        for (condition, advice) in conditions {
            fit.texts.push(condition.text);
            if !advice.is_empty() && !fit.advice.contains(&advice) {
                fit.advice.push(advice);
            }
        }
        Some(fit)
    }

    /// One more condition that has to hold.
    pub(super) fn and(mut self, condition: Condition) -> Self {
        self.distance = self.distance.min(condition.distance);
        self.texts.push(condition.text);
        self
    }

    /// The same with one more thing to do.
    pub(super) fn advising(mut self, advice: &str) -> Self {
        self.advice.push(advice.to_owned());
        self
    }

    /// The same with words that decide nothing.
    pub(super) fn noting(mut self, text: impl Into<String>) -> Self {
        self.note(text);
        self
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.texts.push(text.into());
    }

    pub(super) fn unsure(mut self) -> Self {
        self.distance = 0.0;
        self
    }

    pub(super) fn confidence(&self) -> Confidence {
        match self.distance {
            distance if distance <= LOW => Confidence::Low,
            distance if distance <= MEDIUM => Confidence::Medium,
            _ => Confidence::High,
        }
    }

    pub(super) fn judgement(self) -> Judgement {
        Judgement {
            class: self.class,
            evidence: self.texts.into_iter().map(|text| Evidence { text }).collect(),
            advice: self.advice.join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confidence(condition: Option<Condition>) -> Option<Confidence> {
        condition.map(|condition| Match::new(VerdictClass::Unknown, "").and(condition).confidence())
    }

    #[test]
    fn stats_near_a_threshold_make_no_sure_verdict() {
        assert_eq!(confidence(at_least("x", Some(0.52), 0.5)), Some(Confidence::Low));
        assert_eq!(confidence(at_least("x", Some(0.58), 0.5)), Some(Confidence::Medium));
        assert_eq!(confidence(at_least("x", Some(0.7), 0.5)), Some(Confidence::High));
        assert_eq!(confidence(less_than("x", Some(0.88), 0.9)), Some(Confidence::Low));
        assert_eq!(confidence(at_least("x", Some(0.4), 0.5)), None);
        assert_eq!(confidence(less_than("x", Some(0.9), 0.9)), None);
        assert_eq!(confidence(at_least("x", None, 0.5)), None);
    }

    #[test]
    fn a_full_link_is_a_sure_thing_though_no_share_lies_far_above_its_threshold() {
        assert_eq!(confidence(at_least("link", Some(0.999), 0.97)), Some(Confidence::High));
        assert_eq!(
            confidence(at_least("link", Some(0.985), 0.97)),
            Some(Confidence::Medium)
        );
        assert_eq!(confidence(at_least("link", Some(0.972), 0.97)), Some(Confidence::Low));
    }
}
