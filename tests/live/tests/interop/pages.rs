//! Reports of runs in Chromium: they load nothing, run nothing, and fit every screen. `make test` has
//! the page of a test on a phone; `make live SUITE=pages` has every page at every width, and keeps a
//! picture of each in the directory `LINERATE_SCREENSHOTS`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linerate_interop::{
    FleetLab, HostLink, HttpLab, Process, Service, TIMEOUT, linerate, ours, skip, wait_for,
    wait_until,
};
use serde_json::{Value, json};

const HOSTILE: &str = "<script>alert(1)</script><img src=http://192.0.2.1/>\u{1b}[31m\u{202e}\"'&";

/// A run with a trial for each of these rates, and texts that are markup.
fn record(state: &str, rates: &[f64]) -> Value {
    let measure =
        |value: f64| json!([{ "name": "received_bps", "way": "forward", "value": value }]);
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

/// Widths of a phone, a tablet and a screen.
const WIDTHS: [u32; 3] = [360, 800, 1200];

/// Writes what leaves the page at each width, with every part unfolded, and what it loads or runs.
/// `PAGE` and `WIDTHS` are replaced.
const MEASURE: &str = "<body><script>
const found = [];
for (const width of WIDTHS) {
  const frame = document.createElement('iframe');
  frame.style.cssText = `width: ${width}px; height: 2000px; border: 0`;
  frame.onload = () => {
    const page = frame.contentDocument;
    page.querySelectorAll('details').forEach(part => part.open = true);
    for (const { name } of frame.contentWindow.performance.getEntriesByType('resource'))
      found.push(`${width}: loads ${name}`);
    for (const part of page.querySelectorAll('script'))
      found.push(`${width}: runs ${part.outerHTML}`);
    for (const part of page.querySelectorAll('html, body, body *')) {
      const isDrawn = part.closest('svg') && part.tagName != 'svg';
      const right = part.getBoundingClientRect().right;
      if (!isDrawn && (right > width + 0.5 || part.scrollWidth > part.clientWidth && part.matches('html, body, table')))
        found.push(`${width}: ${part.tagName} ${part.className} ends at ${right}, is ${part.scrollWidth} wide`);
    }
  };
  frame.src = 'PAGE';
  document.body.append(frame);
}
addEventListener('load', () => {
  const text = document.createElement('pre');
  text.textContent = 'measured ' + found.slice(0, 9).join('; ') + '.';
  document.body.append(text);
});
</script>";

/// Chromium that resolves no name but this host's.
fn chromium(directory: &Path) -> Command {
    let mut command = Command::new("chromium");
    let profile = directory.join("profile");
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", profile.display()));
    command
}

/// The browser's standard error, where console messages are, and the page as it understood it.
fn browse(directory: &Path, url: &str) -> Option<(String, String)> {
    let output = chromium(directory)
        .args(["--enable-logging=stderr", "--dump-dom"])
        // A stream of events never ends.
        .arg("--timeout=5000")
        .arg(url)
        .output()
        .ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stderr), text(&output.stdout)))
}

/// A file with a frame in which a page of another file can be read.
fn framed(directory: &Path, page: &Path, html: &str) -> String {
    let file = directory.join("frame.html");
    let url = format!("file://{}", page.display());
    std::fs::write(&file, html.replace("PAGE", &url)).expect("a file");
    format!("file://{}", file.display())
}

/// Nothing leaves the page at these widths, and it loads and runs nothing. `None` without Chromium.
fn fits(directory: &Path, page: &Path, widths: &[u32]) -> Option<()> {
    let measure = MEASURE.replace("WIDTHS", &format!("{widths:?}"));
    let output = chromium(directory)
        .args(["--disable-web-security", "--allow-file-access-from-files"])
        .args(["--enable-logging=stderr", "--timeout=9000", "--dump-dom"])
        .arg(framed(directory, page, &measure))
        .output()
        .ok()?;
    let [document, messages] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        document.contains("measured .<"),
        "{}: {}",
        page.display(),
        document.rsplit("<pre>").next().unwrap_or_default()
    );
    assert_eq!(console(&messages), [""; 0], "{}", page.display());
    Some(())
}

/// Pictures of a page at each width, light and dark, and as it is printed.
fn pictures(directory: &Path, page: &Path, name: &str) {
    let Some(target) = std::env::var_os("LINERATE_SCREENSHOTS").map(PathBuf::from) else {
        return;
    };
    let run = |command: &mut Command| {
        let output = command.output().expect("it runs again");
        assert!(output.status.success(), "{output:?}");
    };

    for width in WIDTHS {
        // Values of `preferredColorScheme` in Chromium.
        for (scheme, number) in [("dark", 0), ("light", 1)] {
            let html = format!(
                "<body style=\"margin: 0\"><iframe src=\"PAGE\" style=\"width: {width}px; \
                 height: 4000px; border: 0\"></iframe>"
            );
            let file = target.join(format!("{name}-{width}-{scheme}.png"));
            run(chromium(directory)
                .arg("--hide-scrollbars")
                .arg(format!("--blink-settings=preferredColorScheme={number}"))
                .arg(format!("--window-size={width},4000"))
                .arg(format!("--screenshot={}", file.display()))
                .arg(framed(directory, page, &html)));
        }
    }

    let file = target.join(format!("{name}.pdf"));
    run(chromium(directory)
        .arg("--no-pdf-header-footer")
        .arg(format!("--print-to-pdf={}", file.display()))
        .arg(format!("file://{}", page.display())));
}

#[test]
fn the_page_of_a_test_fits_a_phone_and_loads_and_runs_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let record = repository.join("fixtures/records/path.json");
    let page = directory.path().join("page.html");
    linerate(&format!(
        "report {} -o {}",
        record.display(),
        page.display()
    ))
    .finish()
    .expect_clean();

    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(!text.contains("<script") && text.contains("<svg"), "{text}");
    if fits(directory.path(), &page, &WIDTHS[..1]).is_none() {
        skip("chromium is not installed");
    }
}

#[test]
#[ignore = "needs Chromium: make live SUITE=pages"]
fn pages_load_nothing_and_run_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let control = directory.path().join("control.html");
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">";
    std::fs::write(&control, format!("{policy}<script>1</script>")).expect("a file");

    let Some((messages, _)) = browse(directory.path(), &format!("file://{}", control.display()))
    else {
        return skip("chromium is not installed");
    };
    assert!(
        !console(&messages).is_empty(),
        "a script that the policy forbids is reported: {messages}"
    );

    let records = [
        record("complete", &[9e8, 8e8, 9.2e8]),
        record("partial", &[9e8]),
        record("failed", &[]),
    ];
    for (number, record) in records.iter().enumerate() {
        let [file, page] =
            ["json", "html"].map(|kind| directory.path().join(format!("run{number}.{kind}")));
        std::fs::write(&file, record.to_string()).expect("a file");
        linerate(&format!("report {} -o {}", file.display(), page.display()))
            .finish()
            .expect_clean();

        let document = inert(directory.path(), &page, &format!("report{number}"));
        assert!(
            document.contains("href=\"data:application/gzip;base64,"),
            "run {number}"
        );
    }
}

/// The page as the browser understood it: it loads and runs nothing, fits every screen, and every
/// drawing has a name.
fn inert(directory: &Path, page: &Path, kind: &str) -> String {
    let name = page.display();
    assert!(
        std::fs::metadata(page).expect("a page").len() < 1_000_000,
        "{name}"
    );
    let (messages, document) = browse(directory, &format!("file://{name}")).expect("it runs again");
    assert_eq!(console(&messages), [""; 0], "{name}");
    assert_eq!(document.matches("<h1>").count(), 1, "{name}: {document}");

    let drawings = document.matches("<svg").count();
    assert_eq!(drawings, document.matches("role=\"img\"").count(), "{name}");
    assert!(!document.contains("<script"), "{name}");
    fits(directory, page, &WIDTHS).expect("it runs again");
    pictures(directory, page, kind);

    document
}

fn console(messages: &str) -> Vec<&str> {
    messages
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect()
}

/// Runs of every kind in one store.
fn run_everything(store: &str) {
    let service = Service::start(&["--record", "--store", store]);
    let port = service.port;
    let profile = "--profile quick --record -q";
    linerate(&format!("test 127.0.0.1:{port} {profile} --store {store}"))
        .finish()
        .expect_code(0);

    let quick = "--over streams=1,2 --time 1 -O 0 --repetitions 1 --budget 20s -q";
    linerate(&format!(
        "sweep 127.0.0.1 -p {port} {quick} --store {store}"
    ))
    .finish()
    .expect_code(0);

    let mut command = Command::new(ours().path());
    command.args([
        "iperf3",
        "-c",
        "127.0.0.1",
        "-t",
        "2",
        "-p",
        &port.to_string(),
        "--lr-record",
        "--lr-doctor",
    ]);
    Process::start({
        command.env("LINERATE_STORE", store);
        command
    })
    .finish()
    .expect_code(0);
    linerate(&format!("doctor lo --record --store {store}"))
        .finish()
        .expect_code(0);

    let lab = HttpLab::start(&[]);
    let load = format!("{}/b/1k -c 2 -d 1s --warmup 0 -q --store {store}", lab.url);
    linerate(&format!("http load {load}"))
        .finish()
        .expect_code(0);

    let plan = lab.plan_of_one_cell("plan.toml", "2, 4");
    let study = lab.run(&[
        "lab",
        &lab.url,
        &plan,
        "--phases",
        "2",
        "--out",
        &lab.path("runs"),
        "--store",
        store,
    ]);
    assert!(matches!(study.code(), Some(0 | 6)), "{study:?}");
}

#[test]
#[ignore = "needs Chromium: make live SUITE=pages"]
fn pages_of_every_kind_of_run_are_inert_and_import_their_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    if browse(directory.path(), "about:blank").is_none() {
        return skip("chromium is not installed");
    }

    let [store, copy] =
        ["history.db", "copy.db"].map(|name| directory.path().join(name).display().to_string());
    run_everything(&store);

    let list = |store: &str| {
        let list = linerate(&format!("history list --all --json --store {store}")).finish();
        list.expect_clean()
            .json()
            .as_array()
            .expect("a list")
            .clone()
    };
    let rows = list(&store);
    let kinds: BTreeSet<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "doctor",
            "http-lab",
            "http-load",
            "session",
            "sweep",
            "test"
        ]
        .into(),
        "{rows:?}"
    );

    let show = |store: &str, id: &str| {
        linerate(&format!("history show {id} --json --store {store}"))
            .finish()
            .json()
    };
    for (number, row) in rows.iter().enumerate() {
        let (id, page) = (
            row["run_id"].as_str().expect("an id"),
            directory.path().join("run.html"),
        );
        linerate(&format!(
            "report {id} -o {} --store {store}",
            page.display()
        ))
        .finish()
        .expect_clean();
        let kind = row["kind"].as_str().unwrap_or_default();
        inert(directory.path(), &page, &format!("{kind}{number}"));
        linerate(&format!("history import {} --store {copy}", page.display()))
            .finish()
            .expect_code(0);
        assert_eq!(
            show(&copy, id)["trials"],
            show(&store, id)["trials"],
            "{}",
            row["kind"]
        );
    }

    assert_eq!(list(&copy).len(), rows.len());

    let page = directory.path().join("runs.html");
    let ids: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["run_id"].as_str())
        .collect();
    linerate(&format!(
        "report {} -o {} --store {store}",
        ids.join(" "),
        page.display()
    ))
    .finish()
    .expect_clean();
    inert(directory.path(), &page, "runs");

    let sides = [1.0, 0.9].map(|factor| {
        let file = directory.path().join(format!("side{factor}.json"));
        let mut record = record(
            "complete",
            &[9e8, 9.1e8, 9.2e8, 9.3e8].map(|rate| rate * factor),
        );
        record["run_id"] = json!(format!(
            "01890a5d-ac96-774b-bcce-b3020000000{}",
            (factor * 10.0) as u8 % 10
        ));
        std::fs::write(&file, record.to_string()).expect("a file");

        file.display().to_string()
    });
    let page = directory.path().join("compare.html");
    let [a, b] = &sides;
    linerate(&format!(
        "compare {a} {b} --store off --html {}",
        page.display()
    ))
    .finish()
    .expect_code(10);
    inert(directory.path(), &page, "compare");

    let page = directory.path().join("trend.html");
    let test = rows
        .iter()
        .find(|row| row["kind"] == "test")
        .and_then(|row| row["run_id"].as_str())
        .expect("a test");
    linerate(&format!(
        "history trend {test} --html {} --store {store}",
        page.display()
    ))
    .finish()
    .expect_code(11);
    inert(directory.path(), &page, "trend");
}

#[test]
#[ignore = "needs Chromium, sshd and root: make live SUITE=pages"]
fn pages_of_fleets_are_inert() {
    let mut links = [HostLink::Gigabit; 6];
    links[4] = HostLink::Slow;
    let Some(lab) = FleetLab::new(&links) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let runs: [(&str, &[&str]); 2] = [("mesh", &["mesh"]), ("incast", &["incast", "--sink", "h0"])];
    for (name, words) in runs {
        let page = directory.path().join(format!("{name}.html"));
        let options = ["-t", "1", "-O", "0", "-q", "--html"];
        let file = page.display().to_string();
        let words = [&["run"], words, &options, &[&file]].concat();
        Process::start(lab.command(&words))
            .finish_within(Duration::from_secs(240))
            .expect_code(0);
        inert(directory.path(), &page, &format!("fleet-{name}"));
    }
}

/// A round of a mesh of hosts, one of which is slow from the twelfth to the nineteenth round, and
/// another one absent in the fifth.
fn fleet_round(number: usize, hosts: usize) -> Value {
    let pairs = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
    let is_absent = |(a, b): &(usize, usize)| number == 5 && (*a == 1 || *b == 1);
    let pairs = pairs.filter(|pair| pair.0 != pair.1 && !is_absent(pair));
    let trials = (0..).zip(pairs).map(|(no, (a, b)): (usize, _)| {
        let is_slow = (12..20).contains(&number) && (a == 2 || b == 2);
        let bps = if is_slow { 94e6 } else { 935e6 + 1e6 * ((7 * no + 5 * number) % 11) as f64 };
        json!({
            "no": no, "state": "complete", "started_ns": 0, "elapsed_ns": 1_000_000_000,
            "factors": { "source": format!("node-{a}"), "sink": format!("node-{b}"), "path": "lab" },
            "measures": [{ "name": "received_bps", "way": "forward", "value": bps }],
        })
    });
    let mut record = record("complete", &[]);
    for (name, value) in [
        ("kind", json!("fleet")),
        (
            "run_id",
            json!(format!("01890a5d-ac96-774b-bcce-{number:012x}")),
        ),
        (
            "started_unix_ms",
            json!(1_769_860_800_000_u64 + number as u64 * 600_000),
        ),
        ("trials", json!(trials.collect::<Vec<_>>())),
        ("links", json!({ "watch": "lab" })),
        (
            "body",
            json!({ "fleet": { "plan": "0".repeat(32), "inputs": {} } }),
        ),
    ] {
        record[name] = value;
    }
    record
}

#[test]
#[ignore = "needs Chromium: make live SUITE=pages"]
fn pages_over_time_are_inert_for_pairs_hosts_and_titles() {
    let directory = tempfile::tempdir().expect("a directory");
    if browse(directory.path(), "about:blank").is_none() {
        return skip("chromium is not installed");
    }
    for (name, hosts, subject) in [
        ("pairs", 6, "host node-2"),
        ("hosts", 10, "host node-2"),
        ("titles", 0, ""),
    ] {
        let store = directory
            .path()
            .join(format!("{name}.db"))
            .display()
            .to_string();
        for number in 1..=30 {
            let mut round = fleet_round(number, hosts);
            if hosts == 0 {
                let mut run = record("complete", &[9e8 + 1e6 * (number % 7) as f64]);
                for field in ["run_id", "started_unix_ms"] {
                    run[field] = round[field].take();
                }
                round = run;
            }
            let file = directory.path().join("round.json");
            std::fs::write(&file, round.to_string()).expect("a file");
            linerate(&format!(
                "history import {} --store {store}",
                file.display()
            ))
            .finish()
            .expect_code(0);
        }
        let page = directory.path().join(format!("grid-{name}.html"));
        linerate(&format!(
            "report --grid --store {store} -o {}",
            page.display()
        ))
        .finish()
        .expect_clean();
        let document = inert(directory.path(), &page, &format!("grid-{name}"));
        assert!(document.contains(subject), "{document}");
    }
}

#[test]
#[ignore = "needs Chromium: make live SUITE=pages"]
fn the_live_page_runs_its_own_script_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let service = Service::start(&["--web"]);
    let client = service.client(ours(), &["-t", "60", "-b", "10M"]);
    let _ = service.wait_for_events("test_started", 1, TIMEOUT);

    let link = wait_for(TIMEOUT, || {
        let text = service.process.stderr();
        text.split_whitespace()
            .find(|word| word.starts_with("http://"))
            .map(str::to_owned)
    });
    // The name of a host may resolve for others alone.
    let link = link.expect("a link");
    let (_, path) = link.split_once("/status").expect("the page");
    let link = format!("http://127.0.0.1:{}/status{path}", service.port);
    let Some(first) = browse(directory.path(), &link) else {
        return skip("chromium is not installed");
    };
    let mut page = first;

    // A curve needs a second of the test.
    let has_curve = wait_until(TIMEOUT, || {
        page = browse(directory.path(), &link).expect("it runs again");
        page.1.contains("<svg")
    });
    let (messages, document) = page;
    assert!(has_curve && document.contains("127.0.0.1:"), "{document}");
    assert_eq!(console(&messages), [""; 0]);
    drop(client);

    // The page forbids to be framed, so its pictures are those of a copy that stands still.
    let copy = directory.path().join("live.html");
    let (begin, rest) = document.split_once("<script>").expect("its script");
    let (_, end) = rest.split_once("</script>").expect("the end of its script");
    std::fs::write(&copy, format!("{begin}{end}")).expect("a file");
    pictures(directory.path(), &copy, "live");
}
