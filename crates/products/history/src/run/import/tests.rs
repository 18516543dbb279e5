//! Real reports become runs of the history, each once.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use linerate_document::Output;
use linerate_document::record::TimeRange;
use linerate_iperf3::report::{self, Options, Style};
use linerate_store::Filter;
use tempfile::TempDir;

use super::*;

fn report(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read_to_string(data.join(name)).expect(name)
}

fn history() -> (TempDir, Store, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("history.db");
    let store = Store::open(&Place::file(&path)).expect("a new store");
    (directory, store, path.to_string_lossy().into_owned())
}

fn counts(imported: &Result<FileImport, Error>) -> (usize, usize, usize) {
    let imported = imported.as_ref().expect("a file with reports");
    (imported.new, imported.known, imported.partial)
}

fn runs(store: &Store) -> Vec<RunRecord> {
    let rows = store.list(&Filter::default()).expect("a list");
    rows.iter()
        .map(|row| store.load(row.run_id).expect("a run"))
        .collect()
}

#[test]
fn a_log_is_imported_once_and_a_cut_report_is_replaced_by_the_whole_one() {
    let (directory, store, path) = history();
    let log = report("iperf3/json-log.c322-s322.server.json");

    let file = directory
        .path()
        .join("server.json")
        .to_string_lossy()
        .into_owned();
    let cut = log
        .rfind("\"cpu_utilization_percent\"")
        .expect("in the last report");
    fs::write(&file, &log[..cut]).expect("written");
    assert_eq!(counts(&import_file(Some(&path), &file, &[])), (2, 0, 1));
    fs::write(&file, &log).expect("written");
    assert_eq!(counts(&import_file(Some(&path), &file, &[])), (1, 2, 0));
    assert_eq!(counts(&import_file(Some(&path), &file, &[])), (0, 3, 0));

    let runs = runs(&store);
    assert_eq!(runs.len(), 3);
    assert!(
        runs.iter()
            .all(|run| run.kind == RunKind::Session && run.state == RunState::Complete)
    );
    assert_eq!(runs[2].started_at, "2026-11-23T20:29:38.189Z");
}

#[test]
fn reports_of_both_ends_are_linked() {
    let (directory, store, path) = history();
    let file = |name: &str| {
        let file = directory
            .path()
            .join("report")
            .to_string_lossy()
            .into_owned();
        fs::write(&file, report(name)).expect("written");
        counts(&import_file(Some(&path), &file, &[]))
    };
    assert_eq!(file("iperf3/json-tcp.c321-s321.client.json"), (1, 0, 0));

    let client = runs(&store).remove(0);
    assert_eq!(file("iperf3/json-tcp.c321-s321.server.json"), (1, 0, 0));
    let runs = runs(&store);
    let server = runs
        .iter()
        .find(|run| run.kind == RunKind::Session)
        .expect("the server's");
    assert_eq!(server.links.twin, Some(client.run_id));
    assert_eq!(
        file("iperf3/json-gso-serverjson.c321-s321.client.json"),
        (2, 0, 0)
    );
}

#[test]
fn a_file_without_reports_is_refused_and_named() {
    let (directory, _store, path) = history();
    let file = directory
        .path()
        .join("notes")
        .to_string_lossy()
        .into_owned();

    for (text, reason) in [
        (&b"hello"[..], "no report"),
        (b"", "no report"),
        (b"\xff\xfe{}", "UTF-16"),
    ] {
        fs::write(&file, text).expect("written");
        let error = import_file(Some(&path), &file, &[])
            .expect_err("no report")
            .to_string();
        assert!(
            error.starts_with(&file) && error.contains(reason),
            "{error}"
        );
    }

    assert!(
        import_file(Some(&path), "/nonexistent", &[])
            .expect_err("no file")
            .to_string()
            .contains("/nonexistent")
    );
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The events as this program reports them with `-J`.
fn written(test: &Imported) -> String {
    let report = Written::default();
    let output = Output::new(Box::new(report.clone()), Box::new(io::sink()));
    let options = Options {
        style: Style::Json,
        version: "iperf 3.21".to_owned(),
        system_info: "Linux testhost".to_owned(),
        ..Options::new(test.endpoint)
    };
    let mut writer = report::client_sink(options, output);
    test.events
        .iter()
        .for_each(|event| writer.event(event).expect("written"));

    String::from_utf8(report.0.lock().expect("no panic").clone()).expect("text")
}

fn first(text: &str) -> Imported {
    import(None, text, &|_| 0)
        .expect("a report")
        .tests
        .remove(0)
}

#[test]
fn a_report_of_this_program_has_the_measures_and_series_of_its_events() {
    let names = [
        "json-tcp-omit1.c321-s321.client.json",
        "json-tcp-P2-bidir.c321-s321.client.json",
        "json-tcp-rev.c321-s321.client.json",
        "json-tcp.c321-s321.server.json",
        "json-udp-P2.c321-s321.client.json",
        "json-udp-rev.c321-s321.client.json",
        "sig-SIGINT-client-json.c321-s321.client.json",
    ];
    for name in names {
        let reported = first(&report(&format!("iperf3/{name}")));
        let again = first(&written(&reported));
        let [expected, actual] = [&reported, &again].map(|test| run(test, 0).trials.remove(0));
        assert!(
            !expected.measures.is_empty() && !expected.series.is_empty(),
            "{name}"
        );
        assert_eq!(actual.measures, expected.measures, "{name}");
        assert_eq!(actual.series, expected.series, "{name}");
        assert_eq!(
            (actual.state, actual.reason),
            (expected.state, expected.reason),
            "{name}"
        );
    }
}

#[test]
fn a_page_of_a_run_imports_the_run() {
    let (directory, store, path) = history();
    let record = run(&first(&report("iperf3/json-tcp.c321-s321.client.json")), 0);

    let file = directory
        .path()
        .join("run.html")
        .to_string_lossy()
        .into_owned();
    let page = linerate_document::record::html(
        std::slice::from_ref(&record),
        TimeRange::default(),
        linerate_document::record::ProductReport::NONE,
    );
    fs::write(&file, page).expect("written");
    assert_eq!(counts(&import_file(Some(&path), &file, &[])), (1, 0, 0));
    fs::write(&file, serde_json::to_string(&record).expect("JSON")).expect("written");
    assert_eq!(counts(&import_file(Some(&path), &file, &[])), (0, 1, 0));
    assert_eq!(runs(&store), [record]);
}
