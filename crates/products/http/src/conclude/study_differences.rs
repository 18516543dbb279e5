//! Differences of two studies that make them hard to compare.

use linerate_model::http::Study;

use super::start_record::changes;
use crate::plan::Plan;

/// Differences that make two studies hard to compare, one sentence each.
pub fn study_differences(before: &Study, after: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    for (which, study) in [("first", before), ("second", after)] {
        if !study.is_complete {
            notes.push(format!("the {which} experiment did not come to its end"));
        }
    }

    if are_different_plans(&before.plan, &after.plan) {
        notes.push("the plans differ".to_owned());
    }

    notes.extend(change_of_protocol(before, after));
    for (whose, one, two) in [
        ("client", Some(&before.client), Some(&after.client)),
        ("server", before.server.as_ref(), after.server.as_ref()),
    ] {
        let changes = one
            .zip(two)
            .map_or_else(Vec::new, |(one, two)| changes(one, two));
        notes.extend(
            changes
                .into_iter()
                .map(|change| format!("{whose}: {change}")),
        );
    }

    notes
}

/// By their values, not by their comments.
fn are_different_plans(before: &str, after: &str) -> bool {
    let name = |text: &str| Plan::parse(text).map(|plan| plan.hash());
    match (name(before), name(after)) {
        (Ok(before), Ok(after)) => before != after,
        // A plan that this version cannot read is compared as text.
        _ => before != after,
    }
}

/// Change of the protocol, where both experiments have it.
fn change_of_protocol(before: &Study, after: &Study) -> Option<String> {
    let words = |study: &Study| {
        let protocol = study.protocol.iter().map(ToString::to_string);
        protocol.collect::<Vec<_>>().join(" and ")
    };
    let is_change = !before.protocol.is_empty()
        && !after.protocol.is_empty()
        && before.protocol != after.protocol;
    is_change.then(|| format!("protocol: {}, now {}", words(before), words(after)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::study::tests::fixtures::{seed_input, study_of};
    use linerate_model::http::HttpVersion;

    #[test]
    fn other_plans_and_hosts_and_an_early_end_are_noted() {
        let mut before = study_of(&seed_input());
        before.client.cpus = Some(4);
        let mut after = before.clone();
        after.is_complete = false;
        after.client.cpus = Some(2);
        after.plan = after.plan.replace("seed = 1", "seed = 2");

        let notes = study_differences(&before, &after);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(study_differences(&before, &before).is_empty());
    }

    #[test]
    fn another_protocol_is_noted_and_another_explanation_of_the_plan_is_not() {
        let before = study_of(&seed_input());
        let mut after = before.clone();
        after.plan.push_str("# said otherwise\n");
        assert!(study_differences(&before, &after).is_empty());
        after.protocol[0].http = HttpVersion::Http2;

        let notes = study_differences(&before, &after);
        assert_eq!(
            notes,
            ["protocol: HTTP/1.1 in plain text, now HTTP/2 in plain text"]
        );

        // Written before this was kept.
        after.protocol.clear();
        assert!(study_differences(&before, &after).is_empty());
    }
}
