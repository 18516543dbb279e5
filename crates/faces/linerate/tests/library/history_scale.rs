//! A history of 100,000 runs, as the commands read it: time and memory of a list, and time of a
//! trend. `make live SUITE=history` runs it.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use linerate::history::{Filter, History, ListForm};
use linerate::model::measure::MeasureName;
use linerate::model::record::{Body, Measure, RunId, RunKind, RunRecord, RunState, Trial, Way};
use linerate_document::Style;
use linerate_store::{Place, Store};

const RUNS: u64 = 100_000;
/// Number of paths; the runs of one of them are those of the trend.
const PATHS: u64 = 20;

fn run(number: u64) -> RunRecord {
    let started_unix_ms = 1_700_000_000_000 + number * 60_000;
    let [.., a, b, c, d] = number.to_be_bytes();
    // The path becomes slower by a tenth in the middle of the time.
    let rate_bps = if number < RUNS / 2 { 1e9 } else { 9e8 } + (number * 7919 % 1000) as f64 * 1e3;
    let measure = Measure::new(MeasureName::ReceivedBps, Way::Forward, rate_bps);

    let mut record = RunRecord::new(
        RunId::new(started_unix_ms, [0, 1, 2, 3, 4, 5, a, b, c, d]),
        RunKind::Test,
        Body::Test,
        "2023-11-14T22:13:20.000Z".to_owned(),
        started_unix_ms,
    );
    record.state = RunState::Complete;
    record.elapsed_ns = 10_000_000_000;
    record.origin.tool = "linerate".to_owned();
    record.path.key = format!("path{}", number % PATHS);
    record.path.spec_key = "spec".to_owned();
    record.path.client = Some("alpha".to_owned());
    record.path.server = Some(format!("server{}", number % PATHS));

    let mut trial = Trial::complete(10_000_000_000);
    trial.measures = vec![measure];
    record.trials = vec![trial];
    record.labels = BTreeMap::new();

    record
}

/// Largest resident memory since [`forget_peak`] (proc_pid_status(5), VmHWM).
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

/// proc_pid_clear_refs(5): 5 resets the peak.
fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("procfs");
}

#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see the times"
)]
#[test]
#[ignore = "takes minutes"]
fn timed_list_and_trend_of_a_hundred_thousand_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.db");

    {
        let store = Store::open(&Place::file(&path)).expect("a new store");
        for number in 0..RUNS {
            store.save(&run(number)).expect("saved");
        }
    }

    let path = path.display().to_string();
    forget_peak();
    let begin = Instant::now();
    let history = History::find(Some(&path)).expect("a place");
    let filter = Filter {
        limit: Some(20),
        ..Filter::default()
    };

    let list = history
        .list(&filter, ListForm::Text, Style::PLAIN)
        .expect("a list")
        .expect("runs");
    let (elapsed, peak) = (begin.elapsed(), peak_kib());
    eprintln!("list: {elapsed:?}, {peak} KiB");
    assert!(
        list.lines().count() > 20 && elapsed < Duration::from_millis(100) && peak < 60 * 1024,
        "{elapsed:?} {peak}"
    );

    let begin = Instant::now();
    let trend = linerate::trend::trend(Some(&path), "last", None).expect("a trend");
    let elapsed = begin.elapsed();
    eprintln!("trend of {} runs: {elapsed:?}", trend.runs.len());
    assert_eq!(
        (trend.runs.len() as u64, trend.changes.len()),
        (RUNS / PATHS, 1)
    );
    assert!(elapsed < Duration::from_millis(300), "{elapsed:?}");
}
