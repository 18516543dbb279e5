//! A store of 100,000 runs: run by `make live SUITE=history`.

use std::process::Command;
use std::time::{Duration, Instant};

use linerate_model::record::{RunKind, RunState};
use linerate_store::{Filter, Label, Place, Sort, Store};

use crate::places::place;
use crate::records::run;

const RUNS: u64 = 100_000;

/// Sets what a list is restricted to.
type Restriction<'a> = &'a dyn Fn(&mut Filter);

#[test]
#[ignore = "takes minutes"]
fn timed_lists_of_a_hundred_thousand_runs() {
    let place = place();
    fill_and_list(&place, Duration::from_millis(100), || {
        // Without the pages that the writing left in memory.
        let file = format!("of={}", place.path().display());
        let dropped = Command::new("dd")
            .args([&file, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"])
            .output();
        assert!(dropped.expect("dd runs").status.success());
    });
}

/// Fills a store and lists it; `before_each` runs before each list.
#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see the times"
)]
pub(crate) fn fill_and_list(place: &Place, limit: Duration, before_each: impl Fn()) {
    let store = Store::open(place).expect("a new store");
    for number in 0..RUNS {
        let mut record = run(number, 1);
        record.kind = if number % 1000 == 0 {
            RunKind::Sweep
        } else {
            RunKind::Test
        };
        record.state = if number % 500 == 0 {
            RunState::Failed
        } else {
            RunState::Complete
        };

        // Facts differ from run to run in tests alone.
        record.hosts.clear();
        store.save(&record).expect("saved");
    }

    let bytes = store.size_bytes().expect("a size");
    drop(store);
    eprintln!("{bytes} bytes, {} a run", bytes / RUNS);
    assert!(bytes < 400_000_000, "{bytes}");

    let all = Filter {
        limit: Some(20),
        ..Filter::default()
    };

    let label = |value: &str| {
        vec![Label {
            key: "site".to_owned(),
            value: value.to_owned(),
        }]
    };
    let rows: [(&str, Restriction<'_>); 9] = [
        ("newest", &|_| ()),
        ("kind", &|filter| filter.kind = Some(RunKind::Sweep)),
        ("state", &|filter| filter.state = Some(RunState::Failed)),
        ("server", &|filter| {
            filter.server = Some("server3".to_owned());
        }),
        ("no such client", &|filter| {
            filter.client = Some("omega".to_owned());
        }),
        ("label", &|filter| filter.labels = label("s1")),
        ("no such label", &|filter| filter.labels = label("s9")),
        ("since", &|filter| {
            filter.since_ms = Some(run(RUNS - 10, 0).started_unix_ms);
        }),
        ("highest", &|filter| filter.sort = Sort::Highest),
    ];
    for (name, restrict) in rows {
        let mut filter = all.clone();
        restrict(&mut filter);
        before_each();

        let begin = Instant::now();
        let rows = Store::open_existing(place)
            .and_then(|store| store.list(&filter))
            .expect("a list");
        let elapsed = begin.elapsed();
        eprintln!("{name}: {} rows in {elapsed:?}", rows.len());
        assert!(elapsed < limit, "{name}: {elapsed:?}");
    }
}
