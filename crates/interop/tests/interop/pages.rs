//! Reports of runs in Chromium: they load nothing and run nothing. `make reports` runs them.

use std::path::Path;
use std::process::Command;

use linerate_interop::{ours, skip};
use serde_json::{Value, json};

const HOSTILE: &str = "<script>alert(1)</script><img src=http://192.0.2.1/>\u{1b}[31m\u{202e}\"'&";

/// A run with a trial for each of these rates, and texts that are markup.
fn record(state: &str, rates: &[f64]) -> Value {
    let measure = |value: f64| json!([{ "name": "received_bps", "way": "forward", "value": value }]);
    let series = |value: f64| {
        let values = [value / 8.0, value / 16.0, value / 8.0];
        json!([{ "name": "bytes", "of": { "stream": 1 }, "way": "forward", "t0_ns": 0, "step_ns": 1_000_000_000, "values": values }])
    };
    let trials = (0..).zip(rates).map(|(no, rate): (u32, &f64)| {
        json!({
            "no": no, "state": state, "started_ns": 0, "elapsed_ns": 3_000_000_000_u64,
            "measures": measure(*rate), "series": series(*rate), "flags": [HOSTILE],
        })
    });
    json!({
        "schema": "linerate.run/1", "run_id": "01890a5d-ac96-774b-bcce-b302099a8057", "kind": "test", "state": state,
        "reason": HOSTILE, "title": HOSTILE, "started_at": "2026-01-31T12:00:00.000Z", "started_unix_ms": 0,
        "elapsed_ns": 3_000_000_000_u64, "origin": { "tool": HOSTILE, "argv": [HOSTILE] },
        "path": { "key": "", "spec_key": "", "client": HOSTILE, "server": HOSTILE },
        "trials": trials.collect::<Vec<_>>(), "body": "test", "notes": [HOSTILE], "labels": { "key": HOSTILE },
    })
}

/// The browser's standard error, where console messages are, and the page as it understood it.
fn browse(directory: &Path, page: &Path) -> Option<(String, String)> {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stderr), text(&output.stdout)))
}

#[test]
#[ignore = "needs Chromium: make reports"]
fn pages_load_nothing_and_run_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let control = directory.path().join("control.html");
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">";
    std::fs::write(&control, format!("{policy}<script>1</script>")).expect("a file");
    let Some((messages, _)) = browse(directory.path(), &control) else {
        return skip("chromium is not installed");
    };
    assert!(messages.contains("CONSOLE"), "a script that the policy forbids is reported: {messages}");

    let records = [record("complete", &[9e8, 8e8, 9.2e8]), record("partial", &[9e8]), record("failed", &[])];
    for (number, record) in records.iter().enumerate() {
        let [file, page] = ["json", "html"].map(|kind| directory.path().join(format!("run{number}.{kind}")));
        std::fs::write(&file, record.to_string()).expect("a file");
        let words = ["report".as_ref(), file.as_os_str(), "-o".as_ref(), page.as_os_str()];
        let written = Command::new(ours().path()).args(words).output().expect("it runs");
        assert!(written.status.success(), "{written:?}");
        assert!(std::fs::metadata(&page).expect("a page").len() < 1_000_000);
        let (messages, document) = browse(directory.path(), &page).expect("it runs again");
        let console: Vec<&str> = messages.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(console.is_empty(), "run {number}: {console:?}");
        assert_eq!(document.matches("<h1>").count(), 1, "run {number}: {document}");
        assert_eq!(document.matches("<svg").count(), document.matches("role=\"img\"").count(), "run {number}");
        assert_eq!(document.matches("<svg").count(), document.matches("<summary>Figures: ").count(), "run {number}");
        assert!(!document.contains("<script"), "run {number}");
        assert!(document.contains("href=\"data:application/gzip;base64,"), "run {number}");
    }
}
