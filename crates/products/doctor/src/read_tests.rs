//! The tests that a pasted text has, with the values that a reader of it would name.

use linerate_model::finding::{Evidence, ReadTest};
use linerate_model::snapshot::Source;

use crate::scope::{Facts, Run, Scope};

/// The tests of hosts whose facts were imported.
pub(crate) fn read_tests(scope: &Scope<'_>) -> Vec<ReadTest> {
    let runs = scope
        .runs()
        .filter(|run| run.host.snapshot.source == Source::Import);
    runs.map(|run| ReadTest {
        subject: run.subject(),
        values: values(&run),
    })
    .collect()
}

fn values(run: &Run<'_>) -> Vec<Evidence> {
    let received = run.number("received_bps").ok();
    // Of TCP what is sent arrives, so that it is one figure.
    let is_guessed = received.as_ref().is_none_or(|received| received.inferred);
    let rates: &[&str] = match (run.is_udp(), is_guessed) {
        (true, _) => &["received_bps", "sent_bps"],
        (false, true) => &["sent_bps"],
        (false, false) => &["received_bps"],
    };

    let others = [
        "seconds",
        "retransmits",
        "loss_share",
        "stalled_share",
        "later_spread",
    ];
    let known = rates
        .iter()
        .chain(&others)
        .filter_map(|fact| Some((*fact, run.number(fact).ok()?)));
    let is_shown =
        |fact: &str, value: f64| value > 0.0 || !["stalled_share", "later_spread"].contains(&fact);

    known
        .filter(|(fact, reading)| is_shown(fact, reading.value))
        .map(|(fact, reading)| {
            let value = if fact == "seconds" {
                (reading.value * 100.0).round() / 100.0
            } else {
                reading.value
            };
            Evidence::new(reading.key, value.to_string(), "")
        })
        .collect()
}
