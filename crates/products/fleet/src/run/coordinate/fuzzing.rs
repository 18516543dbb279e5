//! Results of the two ends of a test as arbitrary bytes. For tests and fuzzing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::TaskId;
use crate::protocol::message::{Outcome, Role, TaskEnd};
use crate::spec::TestOptions;
use linerate_history::run::record::head;
use linerate_model::fleet::{FleetMode, Task};
use linerate_model::record::{Body, RunKind, Series, SeriesOf, Times, Trial, Way};
use linerate_store::text;

use super::cell::{PlannedCell, Received, TaskReport, cells};

/// Bytes of a number.
const WORD_BYTES: usize = 8;
/// Bytes of the numbers of a result that are in no record.
const END_BYTES: usize = 8 * WORD_BYTES;
/// Longest test, and longest time that does not count.
const LENGTH_MAX_NS: u64 = 10_000_000_000;

/// Whatever both ends of a test report, its cell has a rate that is a number, or a reason.
pub fn results(bytes: &[u8]) {
    let (own, text) = bytes.split_at(bytes.len().min(END_BYTES));
    let [client, server] = [Role::Client, Role::Server].map(|role| received(role, own, text));
    let [source, sink] = ["a", "b"].map(|id| id.parse().expect("a host"));
    let task = Task::new(source, sink, "lab");
    let mut report = TaskReport::default();
    [client, server]
        .into_iter()
        .for_each(|received| report.take(received));

    let length = |at| Duration::from_nanos(word(own, at) % LENGTH_MAX_NS);
    let test = TestOptions {
        time: length(7),
        omit: length(6),
        streams: 1,
        rate_bps: None,
        stagger: Duration::ZERO,
    };
    let is_reversed = word(own, 6) % 2 == 1;

    let planned = PlannedCell {
        task,
        id: TaskId(1),
        nominal_bps: Some(1e9),
        is_reversed,
    };
    let found = cells(
        FleetMode::Rounds,
        &[planned],
        BTreeMap::from([(TaskId(1), report)]),
        test,
    );
    assert_eq!(found.len(), 1);

    for measured in found.iter().filter_map(|cell| cell.usable()) {
        assert!(
            measured.goodput_bps.is_finite() && measured.goodput_bps >= 0.0,
            "{measured:?}"
        );
    }
}

fn received(role: Role, own: &[u8], text: &[u8]) -> Received {
    let present = |at: usize| Some(word(own, at)).filter(|value| !value.is_multiple_of(16));
    let end = TaskEnd {
        outcome: Outcome::Done,
        planned_ns: present(0),
        started_ns: present(1),
        clock_step_ns: word(own, 2) as i64,
        bytes: word(own, 3),
        elapsed_ns: word(own, 4),
        ..TaskEnd::aborted("")
    };

    let is_raw = text.first().is_some_and(|byte| byte % 8 == 0);
    let record = if is_raw {
        String::from_utf8_lossy(text).into_owned()
    } else {
        record(text)
    };

    let offset_ns = present(5).map(|offset| offset as i64);
    Received::new(role, end, &record, true, offset_ns)
}

/// A record of a test whose intervals are these bytes.
fn record(bytes: &[u8]) -> String {
    let words: Vec<u64> = (0..bytes.len() / WORD_BYTES)
        .map(|at| word(bytes, at))
        .collect();
    let (times, values) = match words.as_slice() {
        [t0_ns, step_ns, values @ ..] if t0_ns % 2 == 0 => (
            Times::Grid {
                t0_ns: *t0_ns,
                step_ns: *step_ns,
            },
            values,
        ),
        [t0_ns, ends @ ..] => {
            let (ends, values) = ends.split_at(ends.len() / 2);
            (
                Times::Ends {
                    t0_ns: *t0_ns,
                    ends_ns: ends.to_vec(),
                },
                values,
            )
        }
        [] => (
            Times::Ends {
                t0_ns: 0,
                ends_ns: Vec::new(),
            },
            &[][..],
        ),
    };
    let values = values
        .iter()
        .map(|value| Some(f64::from_bits(*value)).filter(|value| value.is_finite()))
        .collect();
    let (name, of) = ("bytes".to_owned(), SeriesOf::Stream(1));
    let series = Series::new(name, of, Way::Forward, times, values);
    let mut trial = Trial::complete(0);
    trial.series = vec![series];

    let mut record = head(RunKind::Test, Body::Test, None, BTreeMap::new());
    record.trials.push(trial);
    text::write(&record)
}

/// A number of the bytes; 0 beyond their end.
fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes
        .get(at * WORD_BYTES..)
        .and_then(|rest| rest.first_chunk::<WORD_BYTES>());
    bytes.map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_results_give_a_cell(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            super::results(&bytes);
        }
    }
}
