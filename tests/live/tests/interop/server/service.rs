//! The server as a service: how it starts, stops, logs, counts, and how it explains logins.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_interop::iperf2::{Iperf2, run_iperf2_at};
use linerate_interop::{
    Keys, NativeHost, Process, Program, RawClient, Report, Server, Service, Signal, TIMEOUT,
    each_case, established, frame, free_port, linerate, original, ours, state, wait_for, words,
};
use serde_json::Value;

// Stopping

/// A test that would run far longer than anybody waits.
const LONG: [&str; 6] = ["-t", "60", "-b", "2M", "-i", "0.2"];

#[test]
fn timed_stop_notifies_every_client_within_two_seconds() {
    each_case(&[Signal::Terminate, Signal::Interrupt], |signal| {
        let service = Service::start(&[]);
        let kinds: [&[&str]; 4] = [&[], &["-R"], &["-u"], &["-u", "-R"]];
        let clients: Vec<Process> = kinds
            .iter()
            .map(|kind| service.client(original(), &[&LONG[..], &["--forceflush"], *kind].concat()))
            .collect();
        clients
            .iter()
            .for_each(|client| client.wait_for_stdout("/sec", 2));

        // One that has frozen cannot hold up the others.
        let frozen = service.client(original(), &[&LONG[..], &["--forceflush"]].concat());
        frozen.wait_for_stdout("/sec", 2);
        frozen.signal(Signal::Stop);

        let _ = service.wait_for_events("test_started", 5, TIMEOUT);
        let started = Instant::now();
        service.process.signal(*signal);

        for client in clients {
            let client = client.finish();
            client
                .expect_code(1)
                .expect_stderr("the server has terminated");
        }

        let server = service.process.finish();
        server.expect_code(0);
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );

        let partial = server.stdout.matches("\"outcome\":\"partial\"").count();
        assert_eq!(partial, 5, "{server:?}");
    });
}

/// The first signal waits for clients to take note; the second does not.
#[test]
fn timed_a_second_interrupt_ends_the_server_at_once() {
    let service = Service::start(&[]);
    let client = service.client(original(), &[&LONG[..], &["--forceflush"]].concat());
    client.wait_for_stdout("/sec", 2);
    client.signal(Signal::Stop);

    let started = Instant::now();
    service.process.signal(Signal::Interrupt);
    let _ = service.wait_for_events("test_ended", 1, TIMEOUT);

    service.process.signal(Signal::Interrupt);
    service.process.finish().expect_code(0);
    assert!(
        started.elapsed() < Duration::from_millis(900),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_hang_up_ends_the_dialects_server_but_not_the_service() {
    let server = Server::start(ours(), &[]);
    server.process.signal(Signal::HangUp);
    server
        .finish()
        .expect_code(0)
        .expect_stderr("the server has terminated");

    let service = Service::start(&[]);
    service.process.signal(Signal::HangUp);
    let _ = service.wait_for_events("reloaded", 1, TIMEOUT);

    service
        .client(original(), &["-n", "64K"])
        .finish()
        .expect_clean();
}

// Starting

/// A service manager, and the command of a service that it starts.
fn manager() -> (tempfile::TempDir, UnixDatagram, Command) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(TIMEOUT)).expect("a time");

    let mut command = Command::new(ours().path());
    command.env("NOTIFY_SOCKET", &path);
    (folder, manager, command)
}

fn notification(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 256];
    let count = manager.recv(&mut buffer).expect("a notification");
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

#[test]
fn service_manager_is_notified_of_ready_and_stopping() {
    let (_folder, manager, command) = manager();
    let service = Service::start_by(command, &[]);
    assert_eq!(notification(&manager), "READY=1");
    service.process.signal(Signal::Terminate);
    assert_eq!(notification(&manager), "STOPPING=1");
    service.process.finish().expect_code(0);
}

#[test]
fn the_service_manager_sees_the_control_thread_at_work_while_a_test_runs_and_while_none_does() {
    let (_folder, manager, mut command) = manager();
    command.env("WATCHDOG_USEC", "200000");
    let service = Service::start_by(command, &[]);

    assert_eq!(notification(&manager), "READY=1");
    let beats = |count| (0..count).for_each(|_| assert_eq!(notification(&manager), "WATCHDOG=1"));
    beats(3);

    let client = service.client(original(), &["-t", "1", "-b", "2M"]);
    let _ = service.wait_for_events("test_started", 1, TIMEOUT);
    beats(3);
    client.finish().expect_clean();
    service.process.signal(Signal::Terminate);
    while notification(&manager) != "STOPPING=1" {}
    service.process.finish().expect_code(0);
}

#[test]
fn the_unit_file_is_valid() {
    let unit = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/linerate.service"
    );
    let text = fs::read_to_string(unit).expect("the unit is part of the repository");

    for line in [
        "Type=notify",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "NoNewPrivileges=yes",
        "WatchdogSec=30",
        "ProtectSystem=strict",
        "User=linerate",
        "DynamicUser=yes",
        "StateDirectory=linerate",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}");
    }

    let options = text
        .lines()
        .find_map(|l| l.strip_prefix("ExecStart=/usr/bin/linerate "))
        .expect("a command");
    let options: Vec<&str> = options
        .split_whitespace()
        .filter(|w| !w.starts_with('$'))
        .collect();
    let help = linerate(&format!("{} --help", options.join(" "))).finish();
    help.expect_code(0);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let installed = folder.path().join("linerate.service");
    fs::write(&installed, text.replace("/usr/bin/linerate", "/bin/true")).expect("written");

    let Ok(verified) = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&installed)
        .output()
    else {
        return linerate_interop::skip("systemd-analyze is not installed");
    };
    assert!(
        verified.status.success() && verified.stderr.is_empty(),
        "{verified:?}"
    );
}

// Metrics

/// Connections that ask nothing are closed for those that do, long before their time is up.
/// Options come from a file, those of the command line take precedence, and what is wrong is named.
#[test]
fn options_come_from_a_file_and_unknown_keys_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("serve.toml");
    let text = "port = 1\nno-browser = true\nlimit = [\"address:tests=1\", \"server:tests=9\"]\n";
    fs::write(&file, text).expect("written");
    let path = file.to_str().expect("a plain path");

    let service = Service::start(&["--config", path]);
    assert!(service.events("browsers").is_empty());
    let packaged = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/serve.toml");
    Service::start(&["--config", packaged]);

    for (text, expected) in [
        ("ports = 1", "unknown key ports"),
        ("port = \"x\"", "--port"),
        ("[port]\nx = 1", "port is neither"),
        ("port = ", "serve.toml"),
    ] {
        fs::write(&file, text).expect("written");
        let refused = linerate(&format!("serve --config {path}")).finish();
        assert_eq!(refused.code(), Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
}

#[test]
fn idle_connections_do_not_delay_metrics() {
    let metrics = format!("127.0.0.1:{}", free_port());
    let _service = Service::start(&["--metrics", &metrics]);
    let connect = || TcpStream::connect(&metrics).expect("the metrics are offered");
    let _idle: Vec<TcpStream> = (0..60).map(|_| connect()).collect();
    let mut requesting = connect();
    requesting.set_read_timeout(Some(TIMEOUT)).expect("a time");
    requesting
        .write_all(format!("GET /metrics HTTP/1.1\r\nHost: {metrics}\r\n\r\n").as_bytes())
        .expect("room");

    let mut response = String::new();
    requesting
        .read_to_string(&mut response)
        .expect("an answer in time");
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
}

#[test]
fn metrics_are_served_at_the_given_address_only() {
    let metrics = format!("127.0.0.1:{}", free_port());
    let service = Service::start(&["--metrics", &metrics]);
    let options = ["-t", "1", "-b", "2M"];
    service.client(original(), &options).finish().expect_clean();
    service
        .client(original(), &[&options[..], &["-u", "-R"]].concat())
        .finish()
        .expect_clean();

    let client = service.client(
        original(),
        &[&LONG[..], &["--forceflush", "-P", "3"]].concat(),
    );
    client.wait_for_stdout("/sec", 2);
    let _ = service.wait_for_events("test_started", 3, TIMEOUT);

    let request = |line: &str, host: &str| {
        get(
            &metrics,
            &format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
    };
    let page = request("GET /metrics", &metrics);
    assert!(
        page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("text/plain; version=0.0.4"),
        "{page}"
    );

    for line in [
        "linerate_running_tests 1",
        "linerate_running_streams 3",
        "linerate_tests_finished_total{protocol=\"tcp\",direction=\"forward\",outcome=\"complete\"} 1",
        "linerate_tests_finished_total{protocol=\"udp\",direction=\"reverse\",outcome=\"complete\"} 1",
        "linerate_test_goodput_bytes_per_second_bucket{protocol=\"tcp\",le=\"1250000\"} 1",
    ] {
        assert!(page.lines().any(|l| l == line), "{line}\n{page}");
    }

    let sent = page
        .lines()
        .find(|l| l.starts_with("linerate_bytes_total{direction=\"sent\",protocol=\"udp\"}"));
    let sent: u64 = sent
        .and_then(|l| l.rsplit(' ').next()?.parse().ok())
        .expect("a number of bytes");
    assert!((200_000..400_000).contains(&sent), "{sent} bytes");
    assert!(
        page.contains("process_resident_memory_bytes ") && page.contains("process_open_fds "),
        "{page}"
    );
    assert!(request("GET /", &metrics).starts_with("HTTP/1.1 404 "));
    assert!(request("POST /metrics", &metrics).starts_with("HTTP/1.1 405 "));

    // A name of others that resolves to this host, as a page in a browser could use it.
    let rebound = format!(
        "rebound.example:{}",
        metrics.rsplit(':').next().expect("a port")
    );
    assert!(request("GET /metrics", &rebound).starts_with("HTTP/1.1 421 "));
    assert!(get(&metrics, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // Its last bytes are not read, so that a reset may overtake the answer.
    let endless = get(&metrics, &"x".repeat(100_000));
    assert!(
        endless.is_empty() || endless.starts_with("HTTP/1.1 400 "),
        "{endless}"
    );

    let plain = Service::start(&[]);
    assert_eq!(
        listeners(plain.process.id()),
        1,
        "the test port and nothing else"
    );
    assert_eq!(listeners(service.process.id()), 2);
}

/// Asks until the other end closes.
fn get(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the endpoint listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
    // A request that is cut off may not be taken completely.
    let _ = stream.write_all(request.as_bytes());
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// Listening TCP sockets of a process.
fn listeners(id: u32) -> usize {
    let output = Command::new("ss")
        .args(["-ltnpH"])
        .output()
        .expect("ss is installed");
    let own = format!("pid={id},");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|l| l.contains(&own))
        .count()
}

#[test]
fn metrics_address_in_use_is_an_error_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let failed = linerate(&format!("serve --port {} --metrics {address}", free_port())).finish();
    failed.expect_code(1).expect_stderr("for metrics");
}

// Keepalive

#[test]
fn control_connections_are_kept_alive_by_default() {
    let server = Server::start(ours(), &[]);
    let client = server.client(
        original(),
        "127.0.0.1",
        &[&LONG[..], &["--forceflush"]].concat(),
    );
    client.wait_for_stdout("/sec", 1);

    let rows = established(server.port);
    assert!(
        rows.iter().any(|row| row.contains("keepalive")),
        "{rows:#?}"
    );
}

// Logins

/// Answer to a refused login: all bytes, and their time.
fn refused_login(port: u16, token: Option<&str>) -> (Vec<u8>, Duration) {
    let mut control = RawClient::named(port).control;
    let member = token.map_or(String::new(), |t| format!(",\"authtoken\":\"{t}\""));
    control.send(&frame(&format!("{{\"tcp\":true,\"time\":1{member}}}")));
    let started = Instant::now();
    (control.drain(), started.elapsed())
}

#[test]
fn timed_reason_of_a_refused_login_is_logged_and_not_sent() {
    let keys = Keys::make();
    let service = keys.service(&[]);

    let rows = [
        (
            Some(keys.token("mario", "bianchi", 0, "oaep")),
            "wrong_password",
            "wrong password",
        ),
        (
            Some(keys.token("luigi", "rossi", 0, "oaep")),
            "unknown_user",
            "unknown user",
        ),
        (
            Some(keys.token("mario", "rossi", -3600, "oaep")),
            "clock_skew",
            "clock differs by -3",
        ),
        (
            Some(keys.token("mario", "rossi", 0, "pkcs1")),
            "padding_mismatch",
            "PKCS#1 v1.5",
        ),
        (Some("!!!".to_owned()), "malformed_token", "malformed token"),
        (None, "no_credentials", "no credentials"),
    ];
    let mut responses = Vec::new();

    for (number, (token, cause, explanation)) in rows.iter().enumerate() {
        let (response, elapsed) = refused_login(service.port, token.as_deref());
        let event = service
            .wait_for_events("login_failed", number + 1, TIMEOUT)
            .remove(number);
        assert_eq!(event["cause"], *cause);
        assert!(
            event["message"]
                .as_str()
                .is_some_and(|m| m.contains(explanation)),
            "{event}"
        );
        responses.push((response, elapsed));
    }

    let refusal = [&[state::SERVER_ERROR, 0, 0, 0, 142][..], &[0; 4]].concat();
    assert!(
        responses.iter().all(|(response, _)| *response == refusal),
        "{responses:?}"
    );

    // Whatever the check found, it is answered after the same time; a busy machine may add to it.
    let mut times: Vec<u128> = responses
        .iter()
        .map(|(_, elapsed)| elapsed.as_millis())
        .collect();
    times.sort_unstable();
    assert!(
        times[0] >= 240 && times[times.len() / 2] < 400,
        "{times:?} ms"
    );

    let log = service.process.stdout() + &service.process.stderr();
    for secret in ["bianchi", "rossi", Keys::USERS.trim()] {
        assert!(!log.contains(secret), "{log}");
    }

    assert_eq!(
        login(&keys, &service, ours(), &[]),
        Some(0),
        "who knows the password is still let in"
    );
}

#[test]
fn guessing_passwords_is_slowed_down_per_address() {
    let keys = Keys::make();
    let service = keys.service(&[]);
    let guess = keys.token("mario", "bianchi", 0, "oaep");
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| refused_login(service.port, Some(&guess)));
        }
    });

    let causes = service.wait_for_events("login_failed", 12, TIMEOUT);
    let locked = causes
        .iter()
        .filter(|e| e["cause"] == "too_many_failures")
        .count();
    assert!((1..=2).contains(&locked), "{causes:?}");
    assert_eq!(
        login(&keys, &service, ours(), &[]),
        Some(1),
        "this address has to wait"
    );
    assert_eq!(
        login(&keys, &service, ours(), &["-B", "127.0.0.5"]),
        Some(0),
        "others need not"
    );
}

#[test]
fn both_paddings_are_accepted_during_a_migration() {
    let keys = Keys::make();
    let strict = keys.service(&[]);
    assert_eq!(
        (
            login(&keys, &strict, ours(), &[]),
            login(&keys, &strict, original(), &[])
        ),
        (Some(0), Some(1))
    );

    let lenient = keys.service(&["--accept-both-paddings"]);
    assert_eq!(
        (
            login(&keys, &lenient, ours(), &[]),
            login(&keys, &lenient, original(), &[])
        ),
        (Some(0), Some(0))
    );
    let record = &lenient.wait_for_events("test_ended", 2, TIMEOUT)[0];
    assert_eq!(record["user"], "mario");
}

#[test]
fn a_user_runs_only_so_many_tests_at_once() {
    let keys = Keys::make();
    let service = keys.service(&["--accept-both-paddings", "--limit", "user:tests=1"]);
    let (port, key) = (service.port.to_string(), keys.path("public"));
    let line =
        format!("-c 127.0.0.1 -p {port} --username mario --rsa-public-key-path {key} --forceflush");
    let mut command = original().command(words(&line).iter().chain(&LONG));
    command.env("IPERF3_PASSWORD", "rossi");

    let running = Process::start(command);
    running.wait_for_stdout("/sec", 1);
    assert_eq!(login(&keys, &service, original(), &[]), Some(1));
    assert_eq!(
        service.wait_for_events("refused", 1, TIMEOUT)[0]["reason"],
        "user_tests"
    );
}

/// The log is for machines as well: every line is JSON, and times never go back.
#[test]
fn the_log_is_in_order() {
    let service = Service::start(&["--log-level", "debug", "--interval", "1"]);
    service
        .client(original(), &["-t", "3", "-b", "1M"])
        .finish()
        .expect_clean();
    let records = service.wait_for_events("test_ended", 1, TIMEOUT);
    assert_eq!(records.len(), 1);

    let progress = wait_for(TIMEOUT, || service.events("test_progress").pop());
    assert!(progress.is_some_and(|p| p["received_bps"].as_f64() > Some(0.0)));
    let text = service.process.stdout();
    let times: Vec<String> = text
        .lines()
        .map(|l| {
            serde_json::from_str::<Value>(l).expect("JSON")["time"]
                .as_str()
                .expect("a time")
                .to_owned()
        })
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// The exit code of a client that knows the password.
fn login(keys: &Keys, service: &Service, program: &Program, more: &[&str]) -> Option<i32> {
    keys.client(service.port, program, "rossi", more).code()
}

#[test]
fn a_service_sends_its_report_to_a_client_that_wants_it() {
    let service = Service::start(&[]);
    for program in [original(), ours()] {
        let text = service
            .client(program, &["-n", "64K", "--get-server-output"])
            .finish();
        text.expect_clean()
            .expect_stdout("Server output:")
            .expect_stdout("receiver");
        let json = service
            .client(program, &["-n", "64K", "--get-server-output", "-J"])
            .finish();
        let report = Report::parse(&json.expect_clean().stdout);
        assert!(
            report
                .text("/server_output_text")
                .contains("Accepted connection from")
        );
    }
}

/// The client of a connected socket never sees an answer from another address. Servers of iperf3
/// and iperf 2 let the route choose it.
#[test]
fn datagrams_come_from_the_address_that_the_client_named() {
    let address = "127.0.0.2";
    let server = Server::start(ours(), &[]);
    let stock = server.client(original(), address, &words("-u -t 1 -b 1M"));
    stock.finish().expect_clean();

    let pairing = (Iperf2::Original, Iperf2::Ours);
    let (stock, _) = run_iperf2_at(address, pairing, "-u -n 14700", "-u");
    stock.expect_stdout("Server Report");

    let host = NativeHost::here();
    let service = host.serve(&[]);
    let target = format!("{address}:{}", service.port);
    let record = host.report(&target, &words("--only datagrams --rate 1M --time 1"));
    let received = |n: usize| record["datagrams"][n]["loss"]["received"].as_u64();
    assert!([0, 1].iter().all(|n| received(*n) > Some(0)), "{record:#}");

    let started = service.wait_for_events("test_started", 1, TIMEOUT);
    assert_eq!(started[0]["protocol"], "udp", "{started:?}");
}
