//! Rule 0: the runs are invalid.

use linerate_model::http::units::shown;
use linerate_model::http::{CellFacts, ErrorClass, ErrorCount, Flag};
use linerate_model::stored_name;

use super::condition::{Condition, any, at_least, happened, less_than};
use crate::rules::prelude::*;

/// Less than this share of the connections was open.
const OPEN_MIN: f64 = 0.99;
/// The hypervisor may give this share to others.
const STEAL_MAX: f64 = 0.05;
/// A control group may be throttled for this share of the time.
const THROTTLED_MAX: f64 = 0.01;

const AGAIN: &str = "run it again";

/// Runs without a result: none finished, or no answer was one to the question.
pub(super) fn unusable(facts: &CellFacts) -> Ruling {
    if facts.medians.runs == 0 {
        let why = facts
            .reason
            .as_ref()
            .map_or_else(String::new, |why| format!(": {why}"));
        return Ok(matched()
            .and(Condition::certain(format!("no finished run{why}")))
            .advice(AGAIN));
    }

    // Before any statistics: a load of which every answer was 404 had a verdict on its speed.
    let refusals =
        facts.errors.count(ErrorClass::Status3xx) + facts.errors.count(ErrorClass::Status4xx);
    require(
        facts.answered_share.is_some_and(|share| share <= 0.0) && refusals > facts.ended / 2,
        "there were answers",
    )?;

    let status = |(_, error): (_, &ErrorCount)| {
        error
            .texts
            .first()?
            .strip_prefix("status ")
            .map(str::to_owned)
    };
    let mut statuses = facts.errors.iter().filter_map(status);
    // Answers of different statuses have no advice in common.
    let status = statuses.next().filter(|_| statuses.next().is_none());
    let (status, advice) = match status.as_deref() {
        Some("404" | "405" | "410") => (status.as_deref(), "check the path of the URL"),
        Some("401" | "403" | "407") => (
            status.as_deref(),
            "check what the server demands (-H \"Authorization: ...\") and allows",
        ),
        Some(redirection) if redirection.starts_with('3') => {
            (status.as_deref(), "load the URL to which it redirects")
        }
        status => (status, "read the first answer with `curl -v`"),
    };
    let text = format!(
        "every answer was {}: {advice}",
        status.unwrap_or("a refusal")
    );

    Ok(matched().and(Condition::certain(text)).advice(advice))
}

/// Runs that were disturbed, so that their measurements mean little.
pub(super) fn disturbed(facts: &CellFacts) -> Ruling {
    let mut found = Vec::new();
    found.extend(not_open(facts));

    let flags = [
        (
            Flag::ControlLost,
            "runs without the server's values, because the control channel was lost",
        ),
        (
            Flag::Unsteady,
            "runs whose two halves differ by more than 5 %",
        ),
    ];
    for (flag, runs) in flags.into_iter().filter(|(flag, _)| facts.is_mostly(*flag)) {
        let condition = match (facts.medians.runs, flag) {
            (1, Flag::Unsteady) => Some(Condition::certain(
                "the rates of the first and the second half differ by more than 5 %",
            )),
            _ => happened(runs, Some(facts.flagged(flag))),
        };
        found.extend(condition.map(|condition| (condition, AGAIN.to_owned())));
    }

    found.extend(held_up(facts));
    let broken = happened(
        "answers that were no HTTP or not the body announced",
        Some(facts.errors.count(ErrorClass::Protocol)),
    );
    found.extend(
        broken.map(|condition| (condition, "read the first answer with `curl -v`".to_owned())),
    );

    any(found)
}

/// Connections that could not be opened, unless this host had none left, which is a verdict of its
/// own.
fn not_open(facts: &CellFacts) -> Option<(Condition, String)> {
    let is_client_limit = facts
        .errors
        .iter()
        .any(|(class, _)| class.is_client_limit());
    let condition = less_than(
        "share of the connections that were open",
        facts.open_share,
        OPEN_MIN,
    )?;
    (!is_client_limit).then(|| (condition, format!("{AGAIN}{}", most_frequent_error(facts))))
}

fn most_frequent_error(facts: &CellFacts) -> String {
    let Some((class, error)) = facts.errors.iter().max_by_key(|(_, error)| error.count) else {
        return String::new();
    };
    let text = error.texts.first().filter(|text| !text.is_empty());
    let text = text.map_or_else(String::new, |text| format!(" ({})", shown(text)));
    format!("; most failed with {}{text}", stored_name(class))
}

fn held_up(facts: &CellFacts) -> Vec<(Condition, String)> {
    let ends = [
        ("client", Some(&facts.client)),
        ("server", facts.server.as_ref()),
    ];
    let mut found = Vec::new();

    for (name, end) in ends
        .into_iter()
        .filter_map(|(name, end)| Some((name, end?)))
    {
        let what = format!("share of the {name}'s time that the hypervisor gave to others");
        let steal = at_least(&what, end.steal, STEAL_MAX);
        found.extend(
            steal.map(|condition| (condition, format!("{AGAIN} when the hypervisor is quiet"))),
        );

        let what = format!("share of the time the {name}'s control group was throttled");
        let throttled = at_least(&what, end.throttled, THROTTLED_MAX);
        found.extend(
            throttled.map(|condition| (condition, format!("lift the CPU quota of the {name}"))),
        );
    }

    found
}
