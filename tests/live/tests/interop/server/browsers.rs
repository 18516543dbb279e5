//! Browsers and ndt7 clients at the port of iperf3, and attackers in their place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use linerate_interop::namespaces::{CLIENT_PORT, Net, SERVER, SERVER_PORT, inside};
use linerate_interop::{
    Certificate, Keys, NDT7, Process, RawBrowser, Service, Signal, Status, TIMEOUT, each_case,
    linerate, masked, original, ours, report, skip, wait_for, wait_until,
};
use serde_json::Value;

const PAGE: &str = "linerate.page.v1";
const SERVE: [&str; 0] = [];

/// The client of crates.io, unmodified, which `.ci/ndt7-client` installs.
fn ndt7_client() -> Option<PathBuf> {
    let tools = std::env::var("TOOLS").unwrap_or_else(|_| "target/tools".to_owned());
    let program = PathBuf::from(tools).join("bin/ndt7-client");
    if !program.exists() {
        skip("ndt7-client is not installed: .ci/ndt7-client FOLDER");
        return None;
    }
    Some(program)
}

/// Rate of the summary in Mbit/s.
fn summary(client: &str, direction: &str) -> f64 {
    let lines = client
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut rates = lines.filter_map(|line| line["Summary"][direction]["ThroughputMbps"].as_f64());
    rates
        .next()
        .unwrap_or_else(|| panic!("no {direction}: {client}"))
}

#[test]
fn timed_ndt7_client_measures_both_directions_and_the_log_has_two_tests() {
    let Some(program) = ndt7_client() else { return };
    let service = Service::start(&SERVE);
    let mut command = Command::new(program);
    command.args([
        "--server",
        &format!("127.0.0.1:{}", service.port),
        "--no-locate",
        "--no-tls",
    ]);
    command.args(["--format", "json"]);
    let client = Process::start(command).finish();

    let stdout = client.expect_clean().stdout.clone();
    for direction in ["Download", "Upload"] {
        let rate = summary(&stdout, direction);
        assert!(rate > 100.0, "{direction} {rate} Mbit/s: {stdout}");
    }
    let ended = service.wait_for_events("test_ended", 2, TIMEOUT);
    for test in &ended {
        assert_eq!(test["outcome"], "complete", "{test}");
    }
}

/// Name, and the part of the client.
type Attack = (&'static str, fn(u16) -> RawBrowser);

fn websocket(port: u16, path: &str, protocol: &str) -> RawBrowser {
    let (browser, status) = RawBrowser::upgrade(port, path, protocol, "");
    assert!(status.contains("101"), "{path}: {status}");
    browser
}

fn upload(port: u16, bytes: &[u8]) -> RawBrowser {
    let mut browser = websocket(port, "/ndt/v7/upload", NDT7);
    browser.send(bytes);
    browser
}

fn control(port: u16, bytes: &[u8]) -> RawBrowser {
    let mut browser = websocket(port, "/control", PAGE);
    browser.send(bytes);
    browser
}

const ATTACKS: [Attack; 11] = [
    ("a slow head", |port| {
        let mut browser = RawBrowser::connect(port);
        browser.send("GET / HTTP/1.1\r\nHost: x\r\n");
        browser
    }),
    ("an endless head", |port| {
        let mut browser = RawBrowser::connect(port);
        browser.send("GET / HTTP/1.1\r\n");
        while browser.send("A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n") {}
        browser
    }),
    ("a frame of 2^63 bytes", |port| {
        upload(port, &[&[0x82, 0xff, 0x80][..], &[0; 11]].concat())
    }),
    ("an unmasked frame", |port| {
        upload(port, &[0x82, 3, 1, 2, 3])
    }),
    ("an unknown opcode", |port| upload(port, &masked(0x83, b""))),
    ("a message within a message", |port| {
        upload(port, &[masked(0x02, b"a"), masked(0x82, b"b")].concat())
    }),
    ("endless fragments of a text", |port| {
        let mut browser = control(port, &masked(0x01, b"x"));
        while browser.send(masked(0x00, &[b'x'; 1000])) {}
        browser
    }),
    ("a ping flood", |port| {
        let mut browser = control(port, &[]);
        while browser.send(masked(0x89, b"ping").repeat(100)) {}
        browser
    }),
    ("a result that is none", |port| {
        control(port, &masked(0x81, b"[1]"))
    }),
    ("a long echo", |port| {
        control(port, &masked(0x82, &[0; 126]))
    }),
    ("POST", |port| {
        let mut browser = RawBrowser::connect(port);
        browser.send(format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            u64::MAX
        ));
        browser
    }),
];

/// Longest time from the last byte of an attacker to its end: a request has 5 s.
const HELD_MAX: Duration = Duration::from_secs(9);

/// Every attacker is disconnected, and the original's client is served as if nothing had happened.
#[test]
fn attackers_in_the_place_of_browsers_are_disconnected() {
    let service = Service::start(&SERVE);
    each_case(&ATTACKS, |(_, attack)| {
        let mut browser = attack(service.port);
        service
            .client(original(), &["-n", "1M"])
            .finish()
            .expect_clean();
        assert!(browser.ends_within(HELD_MAX));
    });
}

#[test]
fn half_open_upgrades_are_bounded_and_others_are_served() {
    let service = Service::start(&SERVE);
    let serve = || {
        service
            .client(original(), &["-n", "1M"])
            .finish()
            .expect_clean();
    };
    serve();
    let idle = Status::of(service.process.id());
    let half_open: Vec<RawBrowser> = (0..3000)
        .map(|_| {
            let mut browser = RawBrowser::connect(service.port);
            browser.send("GET /ndt/v7/download HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n");
            browser
        })
        .collect();

    serve();
    let held = Status::of(service.process.id());
    assert!(held.descriptors < idle.descriptors + 2200, "{held:?}");
    drop(half_open);
    service.process.wait_for_idle(idle);
}

#[test]
fn pages_of_other_origins_test_only_where_the_server_admits_them() {
    let foreign = "Origin: http://evil.example\r\n";
    for (arguments, expected) in [(&SERVE[..], "403"), (&["--any-origin"][..], "101")] {
        let service = Service::start(arguments);
        for (path, protocol) in [("/control", PAGE), ("/ndt/v7/download", NDT7)] {
            let (_, status) = RawBrowser::upgrade(service.port, path, protocol, foreign);
            assert!(status.contains(expected), "{path}: {status}");
        }
        let own = format!("Origin: http://127.0.0.1:{}\r\n", service.port);
        let (_, status) = RawBrowser::upgrade(service.port, "/control", PAGE, &own);
        assert!(status.contains("101"), "{status}");
    }
}

#[test]
fn a_page_is_one_test_that_the_limits_of_the_server_hold() {
    let service = Service::start(&["--limit", "address:tests=1,duration=2"]);
    let (head, body) = RawBrowser::get(service.port, "/");
    assert!(
        head.starts_with("HTTP/1.1 200") && body.contains("Start the test"),
        "{head}"
    );

    let mut page = websocket(service.port, "/control?label=room-7", PAGE);
    let welcome: Value = serde_json::from_str(&page.text().expect("a welcome")).expect("JSON");
    assert_eq!(welcome["seconds"], 2, "{welcome}");
    let (_, status) = RawBrowser::upgrade(service.port, "/ndt/v7/download", NDT7, "");
    assert!(status.contains("503"), "a second test: {status}");

    page.send(masked(0x82, b"12345678"));
    assert_eq!(page.frame(), Some((0x82, b"12345678".to_vec())));

    let path = format!(
        "/ndt/v7/download?session={}",
        welcome["session"].as_str().expect("a name")
    );
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut stream = websocket(service.port, &path, NDT7);
                let first = stream.text().expect("a measurement");
                let first: Value = serde_json::from_str(&first).expect("JSON");
                assert!(first["ConnectionInfo"]["Client"].is_string(), "{first}");
                assert!(first["TCPInfo"]["RTT"].is_u64(), "{first}");
                assert!(stream.ends_within(TIMEOUT));
            });
        }
    });
    let ended = service.wait_for_events("test_ended", 1, TIMEOUT);
    assert_eq!(ended[0]["outcome"], "complete", "{ended:?}");
    assert!(
        ended.len() == 1 && ended[0]["sent_bytes"].as_u64() > Some(1_000_000),
        "{ended:?}"
    );

    page.send(masked(0x81, br#"{"down_bps": 5}"#));
    let stored: Value = serde_json::from_str(&page.text().expect("a name")).expect("JSON");
    let name = stored["result"].as_str().expect("a name");
    let (_, document) = RawBrowser::get(service.port, &format!("/r/{name}.json"));
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(
        (&document["label"], &document["result"]["down_bps"]),
        (&"room-7".into(), &5.into())
    );
    let (head, _) = RawBrowser::get(service.port, &format!("/r/{}.json", "0".repeat(32)));
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn results_in_a_directory_outlive_their_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let directory = folder.path().join("results");
    let words = ["--results", directory.to_str().expect("a plain path")];
    let service = Service::start(&words);
    let mut page = websocket(service.port, "/control", PAGE);
    page.text().expect("a welcome");
    page.send(masked(0x81, br#"{"down_bps": 5}"#));
    let stored: Value = serde_json::from_str(&page.text().expect("a name")).expect("JSON");
    let path = format!("/r/{}.json", stored["result"].as_str().expect("a name"));
    service.process.signal(Signal::Terminate);
    service.process.finish().expect_code(0);

    let service = Service::start(&words);
    let (_, document) = RawBrowser::get(service.port, &path);
    assert!(document.contains("\"down_bps\": 5"), "{document}");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    linerate(&format!("serve --port 0 --results {}", file.display()))
        .finish()
        .expect_code(1)
        .expect_stderr("results in");
}

/// Body and status of a page, which curl reads.
fn curl(words: &[&str]) -> (String, i32) {
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "20", "-w", "%{http_code}"]);
    command.args(words);
    let finished = Process::start(command).finish();
    let at = finished.stdout.len().saturating_sub(3);
    let (body, status) = finished.stdout.split_at(at);
    (body.to_owned(), status.parse().unwrap_or_default())
}

/// One port has plain HTTP and TLS. The certificate is read again at SIGHUP, and one that cannot be
/// read changes nothing.
#[test]
fn certificates_are_served_at_the_same_port_and_reloaded() {
    let [first, second] = [Certificate::make(), Certificate::make()];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let install = |certificate: &Certificate| {
        for name in ["cert.pem", "key.pem"] {
            fs::copy(certificate.path(name), path(name)).expect("copied");
        }
    };
    install(&first);
    let service = Service::start(&[
        "--tls-cert",
        &path("cert.pem"),
        "--tls-key",
        &path("key.pem"),
    ]);
    let url = |scheme: &str| format!("{scheme}://127.0.0.1:{}/", service.port);
    let is_served = |certificate: &Certificate| {
        let (_, status) = curl(&["--cacert", &certificate.path("cert.pem"), &url("https")]);
        status == 200
    };
    assert!(is_served(&first) && !is_served(&second));
    assert_eq!(curl(&[&url("http")]).1, 200);
    service
        .client(original(), &["-n", "1M"])
        .finish()
        .expect_clean();

    install(&second);
    service.process.signal(Signal::HangUp);
    service.wait_for_events("reloaded", 1, TIMEOUT);
    assert!(is_served(&second) && !is_served(&first));

    fs::write(path("cert.pem"), "none").expect("written");
    service.process.signal(Signal::HangUp);
    let warning = &service.wait_for_events("warning", 1, TIMEOUT)[0];
    let message = warning["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("the certificate stays as it was"),
        "{warning}"
    );
    assert!(is_served(&second));
}

/// Attackers of the TLS layer are disconnected, and the original's client is served meanwhile.
#[test]
fn clients_that_break_tls_are_disconnected() {
    let certificate = Certificate::make();
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let service = Service::start(&["--tls-cert", &cert, "--tls-key", &key]);
    for bytes in [
        &b"\x16"[..],
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x05hello",
        b"\x16GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut browser = RawBrowser::connect(service.port);
        browser.send(bytes);
        service
            .client(original(), &["-n", "64K"])
            .finish()
            .expect_clean();
        assert!(browser.ends_within(HELD_MAX), "{bytes:?}");
    }
}

/// With logins the page is for users, who prove themselves over TLS alone.
#[test]
fn users_log_in_over_tls_alone() {
    let (keys, certificate) = (Keys::make(), Certificate::make());
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let service = keys.service(&["--tls-cert", &cert, "--tls-key", &key]);
    let url = |scheme: &str| format!("{scheme}://127.0.0.1:{}/", service.port);
    let secure = url("https");
    for (words, expected) in [
        (vec![url("http")], 403),
        (vec![url("http"), "-u".into(), "mario:rossi".into()], 403),
        (vec![secure.clone()], 401),
        (vec![secure.clone(), "-u".into(), "mario:verdi".into()], 401),
        (vec![secure, "-u".into(), "mario:rossi".into()], 200),
    ] {
        let mut all = vec!["--cacert", &cert];
        all.extend(words.iter().map(String::as_str));
        assert_eq!(curl(&all).1, expected, "{words:?}");
    }
    let failed = service.wait_for_events("login_failed", 1, TIMEOUT);
    assert_eq!(failed.len(), 1, "{failed:?}");
    let (_, status) = RawBrowser::upgrade(service.port, "/control", PAGE, "");
    assert!(status.contains("403"), "{status}");
}

/// The page of the operator is for who has its token, and has a row for each label.
#[test]
fn the_operators_page_needs_the_token_and_has_a_row_for_each_label() {
    let token = "0123456789abcdef012345";
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), token).expect("written");
    let path = file.path().to_str().expect("a plain path");
    let service = Service::start(&["--web", "--token-file", path]);
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", service.port);
    let bearer = format!("Authorization: Bearer {token}");
    let wrong = format!("Authorization: Bearer {}X", &token[1..]);

    for (path, words, expected) in [
        ("/status", &[][..], 401),
        ("/status/live", &[], 401),
        ("/status", &["-H", &wrong], 401),
        ("/status", &["-H", "Cookie: linerate_0="], 401),
        ("/status?token=", &[], 401),
        ("/status", &["-H", &bearer], 200),
        ("/status/live", &["-H", &bearer], 200),
        (
            &format!("/status?token={token}"),
            &["-L", "-c", "/dev/null"],
            200,
        ),
    ] {
        let url = url(path);
        assert_eq!(
            curl(&[words, &[&url]].concat()).1,
            expected,
            "{path} {words:?}"
        );
    }
    let without = Service::start(&SERVE);
    let (head, _) = RawBrowser::get(without.port, "/status");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(!service.process.stderr().contains(token));

    let alone = Service::start(&["--web", "--token-file", path, "--no-browser"]);
    for (path, expected) in [("/status", 200), ("/", 403), ("/ndt/v7/download", 403)] {
        let url = format!("http://127.0.0.1:{}{path}", alone.port);
        assert_eq!(curl(&["-H", &bearer, &url]).1, expected, "{path}");
    }

    for (label, rate) in [
        ("a-1", 940),
        ("a-2", 938),
        ("a-3", 94),
        ("a-4", 941),
        ("a-5", 939),
    ] {
        let mut page = websocket(service.port, &format!("/control?label={label}"), PAGE);
        page.text().expect("a welcome");
        page.send(masked(
            0x81,
            format!("{{\"down_bps\": {rate}e6}}").as_bytes(),
        ));
        page.text().expect("a name");
    }
    let live = url("/status/live");
    let shows = |text: &str| curl(&["-H", &bearer, &live]).0.contains(text);
    let expected = "a-3 is slow: download -90 % against the median of 5 ends.";
    assert!(
        wait_until(TIMEOUT, || shows(expected)),
        "{}",
        curl(&["-H", &bearer, &live]).0
    );
}

#[test]
fn browsers_wait_for_their_turn_and_a_server_without_them_serves_none() {
    let service = Service::start(&["--admit", "queue:1"]);
    let first = websocket(service.port, "/control", PAGE);
    let port = service.port;
    let second = thread::spawn(move || websocket(port, "/control", PAGE));
    // The second one waits as long as the first one has its place.
    assert!(!wait_until(Duration::from_millis(500), || second.is_finished()));
    drop(first);
    second.join().expect("its turn comes");

    let tokens = tempfile::NamedTempFile::new().expect("a file");
    fs::write(tokens.path(), "0123456789012345678901234567890123456789\n").expect("written");
    let tokens = tokens.path().to_str().expect("a plain path");
    for option in [&["--no-browser"][..], &["--no-iperf3", "--tokens", tokens]] {
        let service = Service::start(option);
        let (_, status) = RawBrowser::upgrade(service.port, "/control", PAGE, "");
        assert!(!status.contains("101"), "{option:?}: {status}");
        assert!(service.events("browsers").is_empty());
    }
}

/// A server in its namespace, whose page a Chromium in the other one has tested. Returns with it the
/// stored result as the log has it.
fn tested_in_chromium(net: &Net, directory: &Path) -> (Process, Value) {
    let words = ["serve", "--log-format", "json"];
    let server = Process::start(inside(&net.b, ours().path(), &words));
    server.wait_for_stdout("browsers", 1);
    let url = format!("http://{SERVER}:5201/?auto=1&label=room-7");
    let words = ["--remote-debugging-port=0", &url];
    let page = Process::start(chromium(net, directory, &words));
    let stored = wait_for(Duration::from_secs(60), || logged(&server, "result"));
    drop(page);

    let stored = stored.unwrap_or_else(|| panic!("no result: {server:?}"));
    assert_eq!(stored["label"], "room-7", "{stored}");
    (server, stored)
}

/// The first event of this name in the log of a server.
fn logged(server: &Process, name: &str) -> Option<Value> {
    let stdout = server.stdout();
    let mut lines = stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.find(|line| line["event"] == name)
}

/// Address of a stored result, and its page.
fn shown_in_chromium(net: &Net, stored: &Value) -> (String, String) {
    let path = stored["path"].as_str().expect("a path");
    let url = format!("http://{SERVER}:5201{path}");
    // The profile of the browser that was ended is locked for a while, and a browser may end before
    // the page has its data.
    let directory = tempfile::tempdir().expect("a directory");
    let words = ["--virtual-time-budget=5000", "--dump-dom", &url];
    let shown = wait_for(TIMEOUT, || {
        let page = Process::start(chromium(net, directory.path(), &words)).finish();
        Some(page.stdout).filter(|shown| shown.contains("data-done=\"yes\""))
    });
    (url, shown.expect("the page of a result"))
}

fn has_chromium() -> bool {
    let has = Command::new("chromium").arg("--version").output().is_ok();
    if !has {
        skip("chromium is not installed");
    }
    has
}

/// A page of a server behind a router that shapes 100 Mbit/s down and 20 Mbit/s up.
#[test]
fn timed_the_page_in_chromium_shows_the_rates_of_a_shaped_path() {
    let Some(net) = has_chromium().then(Net::routed).flatten() else {
        return;
    };
    for (port, rate) in [(CLIENT_PORT, 100), (SERVER_PORT, 20)] {
        net.in_middle(&format!(
            "tc qdisc add dev {port} root tbf rate {rate}mbit burst 16kb latency 50ms"
        ));
    }

    let directory = tempfile::tempdir().expect("a directory");
    let (server, stored) = tested_in_chromium(&net, directory.path());
    // The name of the server is known to no client.
    let announced = logged(&server, "browsers").expect("an address");
    assert_eq!(announced["url"], format!("http://{SERVER}:5201/"));
    let (url, shown) = shown_in_chromium(&net, &stored);
    let figure = |id: &str| {
        let text = shown
            .split_once(&format!("id=\"{id}\">"))
            .map(|(_, rest)| rest);
        // On a busy machine the browser may be the limit.
        let value = text.and_then(|text| text.split('<').next());
        let value = value.map(|value| value.trim_start_matches("≥ ").parse());
        let value = value.and_then(Result::<f64, _>::ok);
        value.unwrap_or_else(|| panic!("no {id}: {shown}"))
    };
    let (down, up, latency) = (figure("down"), figure("up"), figure("rtt"));
    report(&format!(
        "page: {down} Mbit/s down, {up} up, {latency} ms under load"
    ));
    assert!(
        (down - 95.6).abs() <= 1.5 && (up - 19.1).abs() <= 0.5,
        "{down} down, {up} up"
    );
    pictures(&net, directory.path(), &url);
}

/// Windows of 4 KiB are what the server's kernel waits for, whatever the browser does.
#[test]
#[ignore = "needs Chromium and root: make live SUITE=pages"]
fn receive_window_of_the_browsers_host_is_named_as_the_limit() {
    let Some(net) = has_chromium().then(Net::new).flatten() else {
        return;
    };
    let small = ["-qw", "net.ipv4.tcp_rmem=4096 4096 8192"];
    let is_set = inside(&net.a, Path::new("sysctl"), &small).status();
    assert!(is_set.is_ok_and(|status| status.success()));

    let directory = tempfile::tempdir().expect("a directory");
    let (_server, stored) = tested_in_chromium(&net, directory.path());
    let (_, shown) = shown_in_chromium(&net, &stored);
    let expected = "The receive window of this device limits the download";
    assert!(shown.contains(expected), "{shown}");
}

/// Keeps a picture of a page at each width in the directory `LINERATE_SCREENSHOTS`.
fn pictures(net: &Net, directory: &Path, url: &str) {
    let Ok(folder) = std::env::var("LINERATE_SCREENSHOTS") else {
        return;
    };
    fs::create_dir_all(&folder).expect("a directory");
    for width in [500, 800, 1200] {
        let (size, file) = (
            format!("--window-size={width},1000"),
            format!("--screenshot={folder}/browser-{width}.png"),
        );
        let words = ["--virtual-time-budget=5000", &size, &file, url];
        Process::start(chromium(net, directory, &words)).finish();
    }
}

fn chromium(net: &Net, directory: &Path, words: &[&str]) -> Command {
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let common = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        &profile,
    ];
    let mut command = inside(
        &net.a,
        Path::new("chromium"),
        &[&common[..], words].concat(),
    );
    command.arg("--disable-background-networking");
    command
}
