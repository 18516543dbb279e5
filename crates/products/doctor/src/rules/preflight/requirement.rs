//! Requirements of a host and the checks that they become.

use linerate_model::http::units::grouped;
use linerate_model::http::{Check, CheckStatus, Side};

use crate::rules::prelude::*;

/// Requirement of a host. The rule about it is ruled out where the host does, and ends as unknown
/// where a fact is missing.
pub(super) struct Requirement<'a> {
    id: &'a str,
    side: Side,
    need: String,
}

impl<'a> Requirement<'a> {
    pub(super) fn new(id: &'a str, side: Side, need: impl Into<String>) -> Self {
        let need = need.into();
        Self { id, side, need }
    }

    pub(super) fn read<T>(&self, value: Option<T>) -> Result<T, NoMatch> {
        value.or_unknown(self.id, "could not be read")
    }

    /// Matches when the host, which has `have`, does not provide what is needed:
    /// [`Severity::Blocker`] makes cells impossible, [`Severity::Medium`] may change results,
    /// [`Severity::Info`] is provided for. What changes that is added by `help`.
    pub(super) fn ruling(
        &self,
        is_met: bool,
        severity: Severity,
        have: impl Into<String>,
        help: impl FnOnce(Match) -> Match,
    ) -> Ruling {
        let have = have.into();
        if is_met {
            return clear(have);
        }

        Ok(help(
            matched()
                .severity(severity)
                .because(self.id, have, &self.need),
        ))
    }

    pub(super) fn check(self, rule: impl FnOnce(&Self) -> Ruling) -> Check {
        let ruling = rule(&self);
        let check = |status, have: String, found: Match| Check {
            id: self.id.to_owned(),
            side: self.side,
            status,
            have,
            need: self.need.clone(),
            fix: found.remedy,
            undo: found.undo,
            advice: found.advice.unwrap_or_default(),
            cells: found.subjects,
        };

        match ruling {
            Err(NoMatch::Clear(have) | NoMatch::NotApplicable(_, have)) => {
                check(CheckStatus::Pass, have, Match::default())
            }
            Err(NoMatch::Unknown(unknown)) => {
                let reasons = unknown.missing.into_iter().map(|(_, why)| why);
                check(CheckStatus::Unknown, reasons.collect(), Match::default())
            }
            Ok(found) => {
                let status = match found.severity {
                    Some(Severity::Blocker) => CheckStatus::Fail,
                    Some(Severity::Info) => CheckStatus::Info,
                    _ => CheckStatus::Warn,
                };
                let have = found
                    .evidence
                    .iter()
                    .map(|evidence| evidence.value.as_str())
                    .collect();
                check(status, have, found)
            }
        }
    }
}

/// A requirement of the whole of these: a value of the host is at least the need.
pub(super) fn at_least(id: &'static str, side: Side, need: u64) -> Requirement<'static> {
    Requirement::new(id, side, format!("at least {}", grouped(need)))
}
