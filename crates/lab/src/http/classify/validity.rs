//! Rule 0: the runs are invalid.

use linerate_model::http::{ErrorClass, Flag, VerdictClass};

use super::Facts;
use super::evidence::{Condition, Match, RuleResult, at_least, happened, less_than};
use crate::http::units::shown;

/// Less than this share of the connections was open.
const OPEN_MIN: f64 = 0.99;
/// The hypervisor may give this share to others.
const STEAL_MAX: f64 = 0.05;
/// A control group may be held for this share of the time.
const THROTTLED_MAX: f64 = 0.01;

pub(super) fn invalid(facts: &Facts<'_>) -> RuleResult {
    if facts.runs.is_empty() {
        let fit = Match::new(VerdictClass::Invalid, "run it again").and(Condition::certain("no finished run"));
        return RuleResult::Matched(fit);
    }
    let mut found = Vec::new();
    found.extend(not_open(facts));
    let flags = [
        (
            Flag::ControlLost,
            "runs without the server's figures, because the control channel was lost",
        ),
        (Flag::Unsteady, "runs whose two halves differ by more than 5 %"),
    ];
    for (flag, what) in flags {
        if facts.is_mostly(flag) {
            found.extend(happened(what, facts.flagged(flag) as u64).map(|condition| (condition, again())));
        }
    }
    found.extend(disturbed(facts));
    let broken = happened(
        "answers that were no HTTP or not the body announced",
        facts.errors(ErrorClass::Protocol),
    );
    found.extend(broken.map(|condition| (condition, "look at the first answer with `curl -v`".to_owned())));
    Match::any(VerdictClass::Invalid, found).map_or(RuleResult::NoMatch, RuleResult::Matched)
}

fn again() -> String {
    "run it again".to_owned()
}

/// Connections that could not be opened, unless this host had none left, which is a verdict of its own.
fn not_open(facts: &Facts<'_>) -> Option<(Condition, String)> {
    let is_client_limit = facts
        .loads()
        .any(|load| load.errors.iter().any(|(class, _)| class.is_client_limit()));
    let open = facts
        .loads()
        .filter(|load| load.connections.wanted > 0)
        .map(|load| load.connections.opened as f64 / load.connections.wanted as f64)
        .reduce(f64::min);
    let condition =
        less_than("share of the connections that were open", open, OPEN_MIN).filter(|_| !is_client_limit)?;
    Some((condition, format!("run it again{}", most_frequent_error(facts))))
}

fn most_frequent_error(facts: &Facts<'_>) -> String {
    let errors = facts.loads().flat_map(|load| load.errors.iter());
    errors
        .max_by_key(|(_, error)| error.count)
        .map_or_else(String::new, |(class, error)| {
            let text = error
                .texts
                .first()
                .map_or_else(String::new, |text| format!(" ({})", shown(text)));
            format!("; most failed with {}{text}", class.name())
        })
}

fn disturbed(facts: &Facts<'_>) -> Vec<(Condition, String)> {
    let ends = [("client", Some(&facts.client)), ("server", facts.server.as_ref())];
    let mut found = Vec::new();
    for (name, end) in ends.into_iter().filter_map(|(name, end)| Some((name, end?))) {
        let steal = at_least(
            &format!("share of the {name}'s time that the hypervisor gave to others"),
            end.steal,
            STEAL_MAX,
        );
        found.extend(steal.map(|condition| (condition, "run it again when the hypervisor is quiet".to_owned())));
        let what = format!("share of the time the {name}'s control group was throttled");
        let throttled = at_least(&what, end.throttled, THROTTLED_MAX);
        found.extend(throttled.map(|condition| (condition, format!("lift the processor quota of the {name}"))));
    }
    found
}
