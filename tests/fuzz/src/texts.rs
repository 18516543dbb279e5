//! Texts that users type or keep, and outputs of other programs: reading ends, and what is accepted
//! is read back unchanged.

use linerate_doctor::{Observed, compare, diagnose};
use linerate_history::readers::{Command, import, import_output};
use linerate_host::import::import as import_tools;
use linerate_http::plan::cells::{Phases, runs};
use linerate_http::plan::estimate::estimate;
use linerate_http::plan::{Plan, RUNS_MAX};
use linerate_model::EventSink;
use linerate_store::{Builder, playback, text};
use linerate_sweep::spec::grammar::{self, Levels, SweptFactor};

/// Plan files of the HTTP lab: a plan that is accepted has a bounded number of runs.
pub fn http_plan(typed: &str) {
    let Ok(plan) = Plan::parse(typed) else {
        return;
    };

    for plan in [plan.clone(), plan.quick()] {
        let again = Plan::parse(&plan.to_toml());
        assert_eq!(
            again.as_ref(),
            Ok(&plan),
            "a plan is read back as it was written"
        );
        assert_eq!(
            again.map(|again| again.hash()),
            Ok(plan.hash()),
            "equal plans have equal hashes"
        );

        let planned = runs(&plan, Phases::ALL).len();
        assert!(planned as u64 <= RUNS_MAX + 200, "{planned} runs");
        let _ = estimate(&plan, Phases::ALL);
    }
}

/// Factors of a sweep as typed behind `--over`.
pub fn sweep_over(typed: &str) {
    for line in typed.split('\n') {
        let _ = (
            grammar::budget(line),
            grammar::length(line),
            grammar::window(line),
            grammar::rate(line),
        );
    }

    let typed: Vec<String> = typed.split('\n').map(str::to_owned).collect();
    for is_udp in [false, true] {
        if let Ok(factors) = grammar::factors(&typed, is_udp) {
            check_factors(&factors, is_udp);
        }
    }
}

fn check_factors(factors: &[SweptFactor], is_udp: bool) {
    let printed: Vec<String> = factors.iter().map(SweptFactor::to_string).collect();
    assert_eq!(
        grammar::factors(&printed, is_udp).as_deref(),
        Ok(factors),
        "factors are read back as printed"
    );

    for factor in factors {
        let is_valid = match &factor.levels {
            Levels::Range(low, high) => 0 < *low && low < high,
            Levels::List(levels) => !levels.is_empty() && levels.is_sorted(),
            Levels::Congestion(names) => names.len() != 1 && names.len() <= 64,
            Levels::Affinity(cpus) => cpus.len() != 1 && cpus.len() <= 64,
        };
        assert!(is_valid, "{factor:?}");
    }
}

/// Pasted output of tools: any text becomes snapshots that can be judged and compared.
pub fn host_tools(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let observed: Vec<Observed> = import_tools("fuzz", &text)
        .snapshots
        .into_iter()
        .map(Observed::once)
        .collect();

    let _ = diagnose(&observed, &[]);
    if let [a, b, ..] = observed.as_slice() {
        let _ = compare(a, b, &[]);
    }
}

/// Reports of other programs for tests: any text is imported or refused.
pub fn test_reports(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // Pasted text begins with a command.
    let (command, output) = text.split_once('\n').unwrap_or_default();
    let _ = import_output(Command::parse(command).as_ref(), output);

    let Ok(contents) = import(Some("fuzz"), &text, &|_| 0) else {
        return;
    };
    for test in contents.tests {
        let mut builder = Builder::default();
        test.events
            .iter()
            .for_each(|event| builder.event(event).expect("a builder takes every event"));
        let _ = builder.finish();
    }
}

/// A record as text: one that is accepted can be played back.
pub fn record(typed: &str) {
    let Ok(record) = text::read(typed) else {
        return;
    };

    assert_eq!(text::read(&text::write(&record)).as_ref(), Ok(&record));
    for trial in &record.trials {
        let _ = playback(trial);
    }
}
