//! Outcomes of rules: a match with its evidence, or the reason why there is none.

use linerate_model::finding::{Confidence, Evidence, Inapplicable, Severity};

use crate::command::{Change, Command, is_token};

/// Outcome of a rule: it fires, or it does not for a reason.
pub(crate) type Ruling = Result<Match, NoMatch>;

/// Why a rule does not fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoMatch {
    /// The facts rule it out.
    Clear(String),
    /// It is about something that the device or the test does not have.
    NotApplicable(Inapplicable, String),
    /// Facts are missing.
    Unknown(Unknown),
}

/// Facts that a rule lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// Keys of the missing facts and why each is missing.
    pub missing: Vec<(String, String)>,
    /// Cause that the known facts suggest.
    pub suspicion: Option<String>,
    /// Advice for a measurement that decides.
    pub advice: Option<String>,
}

impl NoMatch {
    /// The rule cannot be checked without `fact`.
    pub(crate) fn missing(fact: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unknown(Unknown {
            missing: vec![(fact.into(), why.into())],
            ..Unknown::default()
        })
    }
}

/// The rule is ruled out, because of `reason`.
pub(crate) fn clear<T>(reason: impl Into<String>) -> Result<T, NoMatch> {
    Err(NoMatch::Clear(reason.into()))
}

/// Continues when `holds`, otherwise the rule is ruled out.
pub(crate) fn require(holds: bool, reason: impl Into<String>) -> Result<(), NoMatch> {
    if holds { Ok(()) } else { clear(reason) }
}

/// The rule does not apply, because of `reason`.
pub(crate) fn inapplicable<T>(to: Inapplicable, reason: impl Into<String>) -> Result<T, NoMatch> {
    Err(NoMatch::NotApplicable(to, reason.into()))
}

/// The rule cannot be checked without `fact`.
pub(crate) fn unknown<T>(fact: impl Into<String>, why: impl Into<String>) -> Result<T, NoMatch> {
    Err(NoMatch::missing(fact, why))
}

/// A value that a rule needs.
pub(crate) trait Needed<T> {
    /// Without it the rule is ruled out.
    fn or_clear(self, reason: impl Into<String>) -> Result<T, NoMatch>;

    /// Without it the rule cannot be checked.
    fn or_unknown(self, fact: impl Into<String>, why: impl Into<String>) -> Result<T, NoMatch>;
}

impl<T> Needed<T> for Option<T> {
    fn or_clear(self, reason: impl Into<String>) -> Result<T, NoMatch> {
        self.map_or_else(|| clear(reason), Ok)
    }

    fn or_unknown(self, fact: impl Into<String>, why: impl Into<String>) -> Result<T, NoMatch> {
        self.map_or_else(|| unknown(fact, why), Ok)
    }
}

/// Adds a suspicion to an outcome that is unknown.
pub(crate) trait Suspect {
    /// `suspicion` is added only when a fact is missing.
    fn suspect(self, suspicion: impl Into<String>) -> Self;
}

impl<T> Suspect for Result<T, NoMatch> {
    fn suspect(mut self, suspicion: impl Into<String>) -> Self {
        if let Err(NoMatch::Unknown(unknown)) = &mut self {
            // The suspicion that was added first is the most specific.
            unknown.suspicion.get_or_insert_with(|| suspicion.into());
        }
        self
    }
}

/// Details that a rule that fires adds to its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Match {
    pub evidence: Vec<Evidence>,
    pub severity: Option<Severity>,
    pub cap: Option<Confidence>,
    pub remedy: Vec<String>,
    pub undo: Vec<String>,
    pub remedy_host: Option<String>,
    pub advice: Option<String>,
    pub persist: Option<String>,
    pub needs: Vec<String>,
    /// Objects that it concerns, where these are not all that the rule is applied to.
    pub subjects: Vec<String>,
}

/// A match, to be filled with its evidence.
pub(crate) fn matched() -> Match {
    Match::default()
}

impl Match {
    /// Quotes a fact and what it was compared with.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass numbers and texts alike"
    )]
    pub(crate) fn because(
        mut self,
        fact: impl Into<String>,
        value: impl ToString,
        threshold: impl Into<String>,
    ) -> Self {
        self.evidence
            .push(Evidence::new(fact, value.to_string(), threshold));
        self
    }

    pub(crate) fn because_all(mut self, evidence: Vec<Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    pub(crate) fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// Lowers the confidence to at most `cap`.
    pub(crate) fn cap(mut self, cap: Confidence) -> Self {
        self.cap = Some(self.cap.map_or(cap, |old| old.min(cap)));
        self
    }

    /// Lowers the confidence where something is not known for sure.
    pub(crate) fn cap_if(self, applies: bool, cap: Confidence) -> Self {
        if applies { self.cap(cap) } else { self }
    }

    pub(crate) fn severity_if(self, applies: bool, severity: Severity) -> Self {
        if applies {
            self.severity(severity)
        } else {
            self
        }
    }

    /// A command that helps and the one that restores the former state; both need the right to
    /// configure the network. Several are undone in reverse order.
    pub(crate) fn fix(mut self, (command, undo): Change) -> Self {
        self.undo.insert(0, undo.line().to_owned());
        self.run(&command)
    }

    /// A command that helps and changes no setting.
    pub(crate) fn run(mut self, command: &Command) -> Self {
        self.remedy.push(command.line().to_owned());
        self.need("CAP_NET_ADMIN")
    }

    /// The commands are for this host.
    pub(crate) fn on(mut self, host: impl Into<String>) -> Self {
        let host = host.into();
        // A report has it behind each command.
        let is_plain = host.split(' ').all(is_token);
        self.remedy_host = Some(if is_plain {
            host
        } else {
            "the host of the finding".to_owned()
        });

        self
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        let advice = advice.into();
        self.advice = Some(match self.advice {
            Some(former) => format!("{former}; {advice}"),
            None => advice,
        });
        self
    }

    pub(crate) fn persist(mut self, hint: impl Into<String>) -> Self {
        self.persist = Some(hint.into());
        self
    }

    pub(crate) fn subjects(mut self, subjects: Vec<String>) -> Self {
        self.subjects = subjects;
        self
    }

    pub(crate) fn need(mut self, need: &str) -> Self {
        if !self.needs.iter().any(|known| known == need) {
            self.needs.push(need.to_owned());
        }
        self
    }
}
