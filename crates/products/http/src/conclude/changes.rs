//! Changes of hosts and plans that make experiments hard to compare.

use linerate_model::http::{Environment, NegotiatedProtocol, Study};
use linerate_model::words::joined;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// Both hosts at the start of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    /// Start, wall clock of the client.
    pub started_unix_ms: u64,
    /// The negotiated protocol; absent in older directories.
    pub protocol: Option<NegotiatedProtocol>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
}

impl StartRecord {
    /// Changes since an earlier start that make runs of both hard to compare, in words.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changed = changes(&before.client, &self.client);
        match (&before.server, &self.server) {
            (Some(before), Some(now)) => changed.extend(changes(before, now)),
            (None, None) => {}
            _ => changed.push("the server's control channel".to_owned()),
        }

        if let Some(before) = &before.protocol
            && let Some(now) = &self.protocol
            && before != now
        {
            changed.push(format!("protocol: {before}, now {now}"));
        }

        changed
    }
}

/// Changes that make results of a host incomparable with earlier ones: kernel, NIC, CPUs, limits.
/// One entry for each change, in words; empty for the same host. What either side could not read is
/// no change.
pub(crate) fn changes(before: &Environment, after: &Environment) -> Vec<String> {
    [
        change("linerate", &Some(&before.version), &Some(&after.version)),
        change("kernel", &before.kernel, &after.kernel),
        change("CPUs", &before.cpus, &after.cpus),
        change("device", &before.device, &after.device),
        change("link in bit/s", &before.link_bps, &after.link_bps),
        change(
            "largest packet in bytes",
            &before.mtu_bytes,
            &after.mtu_bytes,
        ),
        change(
            "limit of descriptors",
            &before.nofile_hard,
            &after.nofile_hard,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn change<T: PartialEq + std::fmt::Display>(
    what: &str,
    before: &Option<T>,
    after: &Option<T>,
) -> Option<String> {
    let before = before.as_ref()?;
    let after = after.as_ref()?;
    (before != after).then(|| format!("{what}: {before}, now {after}"))
}

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
    let words = |study: &Study| joined(&study.protocol, " and ");
    let is_change = !before.protocol.is_empty()
        && !after.protocol.is_empty()
        && before.protocol != after.protocol;
    is_change.then(|| format!("protocol: {}, now {}", words(before), words(after)))
}

#[cfg(test)]
mod tests {
    use linerate_model::http::HttpVersion;

    use super::*;
    use crate::conclude::study::tests::fixtures::{seed_input, study_of};

    #[test]
    fn changes_are_named_and_what_was_not_read_is_none() {
        let before = Environment {
            kernel: Some("6.1".to_owned()),
            cpus: Some(4),
            link_bps: Some(1_000_000_000),
            ..Environment::default()
        };
        assert!(changes(&before, &before).is_empty());

        let mut after = before.clone();
        after.kernel = Some("6.12".to_owned());
        after.link_bps = None;
        after.mtu_bytes = Some(9000);
        assert_eq!(changes(&before, &after), ["kernel: 6.1, now 6.12"]);
    }

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
