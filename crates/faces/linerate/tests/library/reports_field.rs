//! Goal: reports of iperf3, iperf 2 and speed tests mean what a reader of them knows. Method:
//! `fixtures/field/reports`, each input with its answer or its values.

use std::fs;
use std::path::{Path, PathBuf};

use linerate::compare::{CompareSpec, compare};
use linerate::diagnose::{Query, Source, diagnose};
use linerate::history::{Filter, Label};
use linerate::import::import_file;
use linerate::report::{Form, ReportSpec, report};
use linerate::trend::trend;
use linerate_doctor::report as doctor;
use linerate_document::Style;
use linerate_history::conclude::trend::TrendState;
use linerate_model::finding::Confidence;
use linerate_model::measure::MeasureName;
use linerate_model::record::{RunRecord, Way};
use linerate_model::two_sample::Verdict;
use linerate_store::{Place, Store};
use tempfile::TempDir;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/field/reports")
}

fn path(input: &str) -> String {
    directory().join(input).to_string_lossy().into_owned()
}

/// Answer of `linerate doctor --from FILE`.
struct Answer {
    input: &'static str,
    /// Name of the verdict.
    verdict: &'static str,
    /// Parts of the lines before `Also` and `Checked`.
    parts: &'static [&'static str],
    /// Texts that the report must not contain.
    never: &'static [&'static str],
}

const fn answer(
    input: &'static str,
    verdict: &'static str,
    parts: &'static [&'static str],
    never: &'static [&'static str],
) -> Answer {
    Answer {
        input,
        verdict,
        parts,
        never,
    }
}

const ANSWERS: [Answer; 13] = [
    answer(
        "p13-udp-rcvbuf.txt",
        "receiver-cpu-app",
        &[
            "(likely)",
            "39465 datagrams lost",
            "socket buffer: 100 % of the loss",
        ],
        &["certain", "UNREAD"],
    ),
    answer(
        "p14-udp-loss-client.txt",
        "path-or-receiver",
        &[
            "11 % of the datagrams lost",
            "19.5 Mbit/s received",
            "1022 datagrams lost",
            "22 Mbit/s sent",
        ],
        &["no limit found", "UNREAD"],
    ),
    answer(
        "p14-udp-loss-client.json",
        "path-or-receiver",
        &["11 % of the datagrams lost", "1050 datagrams lost"],
        &["no limit found", "UNREAD"],
    ),
    answer(
        "p15-server-log.txt",
        "unknown",
        &[
            "iperf3 -s: 20.3 Mbit/s received",
            "iperf3 -s -u: 20 Mbit/s received",
            "0 % of the datagrams lost",
        ],
        &["UNREAD"],
    ),
    answer(
        "p32-10g-gets-941.txt",
        "slower-link",
        &[
            "the rate is that of a slower link",
            "link speed 10 Gbit/s",
            "ip route get PEER",
        ],
        &["the link is full", "UNREAD"],
    ),
    answer(
        "p33-policer-steps.txt",
        "policer",
        &[
            "a policer on the path",
            "479 Mbit/s in the first second",
            "94.4 Mbit/s afterwards",
        ],
        &["UNREAD"],
    ),
    answer(
        "p35b-iperf2-client-noprompt.txt",
        "unknown",
        &["19.2 Mbit/s sent", "4.26 s long"],
        &["UNREAD"],
    ),
    answer(
        "p35c-iperf2-udp-noprompt.txt",
        "path-or-receiver",
        &[
            "38 % of the datagrams lost",
            "19.5 Mbit/s received",
            "31.5 Mbit/s sent",
        ],
        &["UNREAD"],
    ),
    answer(
        "p35-e-flag-206.txt",
        "unknown",
        &["912 Mbit/s sent", "299 retransmissions"],
        &["UNREAD"],
    ),
    answer(
        "p38-iperf2-i1.txt",
        "line-rate",
        &["940 Mbit/s sent", "3 s long"],
        &["UNREAD"],
    ),
    answer(
        "p43-directions.txt",
        "one-direction",
        &[
            "one direction is much slower",
            "92.3 Mbit/s received",
            "other direction 935 Mbit/s",
            "2211 retransmissions",
        ],
        &["UNREAD"],
    ),
    answer(
        "i3-udp-nan.json",
        "path-or-receiver",
        &["33 % of the datagrams lost"],
        &["NaN", "UNREAD"],
    ),
    answer(
        "i2-csv-enhanced.csv",
        "unknown",
        &["100 Mbit/s", "30 s long"],
        &["UNREAD"],
    ),
];

#[test]
fn reports_get_their_answer() {
    let mut wrong = Vec::new();
    for Answer {
        input,
        verdict,
        parts,
        never,
    } in ANSWERS
    {
        let query = Query::of(Source::Files(vec![directory().join(input)]));
        let diagnosis = diagnose(&query).unwrap_or_else(|error| panic!("{input}: {error}"));
        let text = doctor::text(
            &diagnosis,
            false,
            Style {
                columns: 10_000,
                ..Style::PLAIN
            },
        );

        let is_answer = |line: &&str| {
            !["Also", "Checked", "Unread"]
                .iter()
                .any(|label| line.starts_with(label))
        };
        let answer = text
            .lines()
            .take_while(is_answer)
            .collect::<Vec<_>>()
            .join("\n");

        let found = diagnosis.verdict.verdict.as_str();
        if found != verdict {
            wrong.push(format!(
                "{input}: {found} in the place of {verdict}:\n{text}"
            ));
        }

        for part in parts.iter().filter(|part| !answer.contains(**part)) {
            wrong.push(format!("{input}: the answer lacks {part:?}:\n{text}"));
        }

        for word in never.iter().filter(|word| text.contains(**word)) {
            wrong.push(format!("{input}: the report has {word:?}:\n{text}"));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One moment says that the totals fit, two say that they grew in the test.
#[test]
fn two_moments_of_one_host_make_the_cause_certain() {
    let after = fs::read_to_string(path("p13-udp-rcvbuf.txt")).expect("a text");
    let counters = after
        .split("user@server:~$ netstat")
        .nth(1)
        .expect("its counters")
        .replace("39470", "5");

    let folder = tempfile::tempdir().expect("a folder");
    let before = folder.path().join("before.txt");
    fs::write(&before, format!("user@server:~$ netstat{counters}")).expect("written");

    let query = Query::of(Source::Compared([
        before,
        directory().join("p13-udp-rcvbuf.txt"),
    ]));
    let diagnosis = diagnose(&query).expect("a diagnosis");
    let text = doctor::text(
        &diagnosis,
        false,
        Style {
            columns: 10_000,
            ..Style::PLAIN
        },
    );

    let verdict = &diagnosis.verdict;
    assert_eq!(
        (verdict.verdict.as_str(), verdict.confidence),
        ("receiver-cpu-app", Confidence::High),
        "{text}"
    );
    assert!(
        text.contains("(certain)") && text.contains("39465"),
        "{text}"
    );
}

/// A history of its own.
fn history() -> (TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory
        .path()
        .join("history.db")
        .to_string_lossy()
        .into_owned();
    (directory, path)
}

fn runs(store: &str) -> Vec<RunRecord> {
    let store = Store::open_existing(&Place::file(store)).expect("a history");
    let rows = store.list(&Filter::default()).expect("a list");
    rows.iter()
        .map(|row| store.load(row.run_id).expect("a run"))
        .collect()
}

fn measured(run: &RunRecord, name: MeasureName, way: Way) -> Option<f64> {
    let measures = run.trials.iter().flat_map(|trial| &trial.measures);
    measures
        .filter(|measure| (measure.name, measure.way) == (name, way))
        .map(|measure| measure.value)
        .next()
}

#[test]
fn values_of_csv_and_json_are_those_of_their_tests() {
    use MeasureName as M;
    type Values = &'static [(M, Way, f64)];

    let inputs: [(&str, usize, Values); 5] = [
        (
            "i2-218-tcp-P3.csv",
            3,
            &[(M::SentBps, Way::Forward, 34.2e6)],
        ),
        (
            "i2-221-tcp-P2.csv",
            2,
            &[(M::SentBps, Way::Forward, 23.1e6)],
        ),
        (
            "i2-csv-enhanced.csv",
            1,
            &[(M::ReceivedBps, Way::Forward, 100.0e6)],
        ),
        (
            "i3-udp-nan.json",
            1,
            &[
                (M::SentBps, Way::Reverse, 66.0e3),
                (M::ReceivedBps, Way::Reverse, 44.0e3),
                (M::LostShare, Way::Reverse, 1.0 / 3.0),
            ],
        ),
        (
            "p14-udp-loss-client.json",
            1,
            &[(M::LostShare, Way::Forward, 0.1105)],
        ),
    ];
    for (input, streams, values) in inputs {
        let (_directory, store) = history();
        let imported = import_file(Some(&store), &path(input), &[])
            .unwrap_or_else(|error| panic!("{input}: {error}"));
        assert_eq!(
            (imported.new, imported.known, imported.partial),
            (1, 0, 0),
            "{input}: one run"
        );

        let runs = runs(&store);
        let [run] = runs.as_slice() else {
            panic!("{input}: {} runs", runs.len())
        };
        let detail = run.trials[0].detail.as_ref().expect("a test");
        let linerate_model::record::Detail::Test(test) = detail else {
            panic!("{input}: another kind of trial")
        };
        assert_eq!(test.streams.len(), streams, "{input}");

        for (name, way, expected) in values {
            let found = measured(run, *name, *way).unwrap_or_else(|| panic!("{input}: no {name}"));
            assert!(
                (found / expected - 1.0).abs() < 0.005,
                "{input}: {name} is {found}, not {expected}"
            );
        }
    }
}

#[test]
fn reports_that_cannot_be_are_refused_with_the_reason() {
    let (_directory, store) = history();
    for (input, reasons) in [
        ("i3-lost-180.json", &["implausible", "datagrams lost"][..]),
        ("i3-utf16.json", &["UTF-16", "iconv -f UTF-16 -t UTF-8"]),
    ] {
        let error = import_file(Some(&store), &path(input), &[])
            .expect_err(input)
            .to_string();
        assert!(
            reasons.iter().all(|reason| error.contains(reason)),
            "{input}: {error}"
        );
        let error = report(&ReportSpec::new(vec![path(input)], Form::Text))
            .expect_err(input)
            .to_string();
        assert!(
            reasons.iter().all(|reason| error.contains(reason)),
            "{input}: {error}"
        );
    }
}

#[test]
fn a_full_duplex_test_in_csv_is_one_run_with_both_directions() {
    let (_directory, store) = history();
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../products/history/tests/data/iperf2");
    let file = data.join("tcp-csv-fullduplex.2.1.8.client.csv");
    let imported = import_file(Some(&store), &file.to_string_lossy(), &[]).expect("a report");
    assert_eq!((imported.new, imported.unread_lines), (1, 0));

    let runs = runs(&store);
    let sent = measured(&runs[0], MeasureName::SentBps, Way::Forward).expect("sent");
    let received = measured(&runs[0], MeasureName::ReceivedBps, Way::Reverse).expect("received");
    assert!(
        (sent / 20_511_753.0 - 1.0).abs() < 0.01 && (received / 20_000_801.0 - 1.0).abs() < 0.01,
        "{sent} {received}"
    );
}

/// The level is back after a slower week; one of the last runs is dead.
#[test]
fn a_path_that_recovered_is_steady_and_its_recovery_is_listed() {
    let (_directory, store) = history();
    let mut inputs: Vec<PathBuf> = fs::read_dir(directory().join("trend-recovered"))
        .expect("a directory")
        .map(|entry| entry.expect("a file").path())
        .collect();
    inputs.sort();

    for input in &inputs {
        import_file(Some(&store), &input.to_string_lossy(), &[]).expect("a report");
    }

    let found = trend(Some(&store), "last", None).expect("a trend");
    assert_eq!(found.state(), TrendState::Steady, "{:?}", found.changes);
    let [worse, better] = found.changes.as_slice() else {
        panic!("{:?}", found.changes)
    };
    assert!(worse.is_worse && !better.is_worse);

    // The percentages are those of the two medians beside them.
    let text = linerate_history::report::trend::text(&found, &|_| "then".to_owned(), Style::PLAIN);
    for change in &found.changes {
        let percent = (change.after / change.before - 1.0) * 100.0;
        assert!(
            text.contains(&format!("({percent:+.1} %)")),
            "{percent}: {text}"
        );
    }
}

#[test]
fn files_are_reported_and_compared_without_a_history() {
    for (input, part) in [
        ("p14-udp-loss-client.json", "11"),
        ("i2-218-tcp-P3.csv", "34.2 Mbit/s"),
        ("p33-policer-steps.txt", "156 Mbit/s"),
        ("trend-recovered/A00.json", "Mbit/s"),
    ] {
        let text = report(&ReportSpec::new(vec![path(input)], Form::Text))
            .unwrap_or_else(|error| panic!("{input}: {error}"));
        assert!(text.contains(part), "{input}: {text}");
    }

    let spec = CompareSpec::new(
        path("trend-recovered/A00.json"),
        path("trend-recovered/D00.json"),
    );
    let compared = compare(&spec).expect("two runs");
    assert_eq!(
        compared.comparison.conclusion,
        Some(Verdict::TooFew),
        "{:?}",
        compared.comparison
    );

    let text = linerate_history::report::compare::text(&compared.comparison, true, Style::PLAIN);
    assert!(
        text.contains("linerate history import --label side=b FILE..."),
        "{text}"
    );
}

#[test]
fn labels_of_an_import_select_the_sides_of_a_comparison() {
    let (_directory, store) = history();
    let label = |text: &str| linerate_store::parse_label(text).expect(text);
    let sides: [(&str, Label); 2] = [("A", label("side=a")), ("B", label("side=b"))];
    for (side, label) in &sides {
        for number in 0..8 {
            let input = path(&format!("trend-recovered/{side}0{number}.json"));
            import_file(Some(&store), &input, std::slice::from_ref(label)).expect("a report");
        }
    }

    // A run that is known gets the labels of a later import.
    let again = path("trend-recovered/A00.json");
    let known = import_file(Some(&store), &again, &[label("seen=twice")]).expect("a report");
    assert_eq!((known.new, known.known), (0, 1));

    let twice = runs(&store)
        .into_iter()
        .filter(|run| run.labels.contains_key("seen"))
        .count();
    assert_eq!(twice, 1);

    let mut spec = CompareSpec::new("label:side=a", "label:side=b");
    spec.store = Some(store);
    let compared = compare(&spec).expect("two sides");
    assert_eq!(
        [&compared.comparison.a, &compared.comparison.b].map(|side| side.trials),
        [8, 8]
    );
}
