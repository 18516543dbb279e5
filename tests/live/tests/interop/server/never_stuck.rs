//! Clients that freeze, die or are cut off, at every point of a test: each frees its place in time,
//! what it did is recorded, and no other client is delayed.

use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{
    Control, Process, RawClient, Report, Server, Service, Signal, Status, TIMEOUT, cpu_time,
    each_case, fresh_cookie, original, ours, wait_for, wait_until,
};
use serde_json::Value;

/// Liveness timeout of the servers under test.
const LIVENESS: Duration = Duration::from_secs(3);
/// Timeout of a client in any other step.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time that a busy machine may add.
const MARGIN: Duration = Duration::from_secs(2);
const HEALTHY: usize = 10;

fn service() -> Service {
    Service::start(&["--liveness", "3"])
}

/// Ten well-behaved clients with a known rate.
fn healthy_clients(service: &Service) -> Vec<Process> {
    let kinds: [&[&str]; 5] = [&[], &["-R"], &["-u"], &["-u", "-R"], &["--bidir"]];
    (0..HEALTHY)
        .map(|n| {
            service.client(
                original(),
                &[&["-t", "11", "-b", "2M", "-J"], kinds[n % kinds.len()]].concat(),
            )
        })
        .collect()
}

/// All ten ended well, with the rate they asked for.
fn expect_unaffected(clients: Vec<Process>) {
    for client in clients {
        let client = client.finish();
        let report = Report::parse(&client.expect_clean().stdout);

        for sum in ["sum", "sum_received"] {
            let Some(rate) = report.get(&format!("/end/{sum}/bits_per_second")) else {
                continue;
            };
            let rate = rate.as_f64().expect("a rate");
            assert!(
                (0.9..1.1).contains(&(rate / 2e6)),
                "{rate} bit/s instead of 2 Mbit/s: {client:?}"
            );
        }
    }
}

/// Leads a client of a server on this port up to a step of the dialogue.
type Step = fn(u16) -> RawClient;

/// Steps of the dialogue at which a client may stop.
const STEPS: [(&str, Step); 6] = [
    ("before its cookie", RawClient::connect),
    ("instead of its parameters", RawClient::named),
    ("instead of its streams", |port| {
        RawClient::accepted(port, TCP)
    }),
    ("instead of its UDP streams", |port| {
        RawClient::accepted(port, UDP)
    }),
    ("instead of its results", ended),
    ("instead of its good-bye", all_but_the_last_message),
];

#[test]
fn timed_silence_in_any_step_ends_in_time_and_delays_no_other() {
    let service = service();
    let healthy = healthy_clients(&service);
    each_case(&STEPS, |(_, step)| {
        let mut client = step(service.port);
        let started = Instant::now();
        client.control.drain();
        let elapsed = started.elapsed();
        assert!(elapsed < HANDSHAKE + MARGIN, "{elapsed:?}");
    });
    expect_unaffected(healthy);

    let causes = service.events("handshake_failed");
    let seen = |cause: &str| causes.iter().filter(|e| e["cause"] == cause).count();
    assert_eq!(
        (seen("cookie"), seen("parameters"), seen("streams")),
        (1, 1, 2),
        "{causes:?}"
    );
}

/// A client that is killed resets or closes its connections, at the same steps.
#[test]
fn an_end_in_any_step_frees_the_place_at_once() {
    let service = service();
    each_case(&STEPS, |(_, step)| drop(step(service.port)));
    let running = running(service.port);
    drop(running);

    // Nothing of them is left when the next one is served.
    service
        .client(original(), &["-n", "64K"])
        .finish()
        .expect_clean();
    let records = service.wait_for_events("test_ended", 4, MARGIN);
    let partial = records.iter().filter(|r| r["outcome"] == "partial").count();
    assert!(partial >= 2, "{records:?}");
}

/// Options of a client that is frozen or killed, and the time from the signal to the end of its
/// test.
const MISFITS: [(&[&str], Signal, Duration); 8] = [
    (&["-b", "2M"], Signal::Stop, LIVENESS),
    (&["-b", "200M"], Signal::Stop, LIVENESS),
    (&["-R", "-b", "20M"], Signal::Stop, LIVENESS),
    (&["-u", "-b", "2M"], Signal::Stop, LIVENESS),
    (&["--bidir", "-b", "20M"], Signal::Stop, LIVENESS),
    (&["-b", "2M"], Signal::Kill, Duration::ZERO),
    (&["-R", "-b", "2M"], Signal::Kill, Duration::ZERO),
    (&["-u", "-R", "-b", "2M"], Signal::Kill, Duration::ZERO),
];

#[test]
fn test_of_a_frozen_or_killed_client_ends_in_time_and_delays_no_other() {
    let service = service();
    let healthy = healthy_clients(&service);
    each_case(&MISFITS, |(options, signal, limit)| {
        let options = [&["-V", "-t", "60", "-i", "0.2", "--forceflush"], *options].concat();
        let client = service.client(original(), &options);
        client.wait_for_stdout("/sec", 3);

        let cookie = cookie_of(&client.stdout());
        client.signal(*signal);
        let started = Instant::now();
        let record = wait_for(*limit + MARGIN, || record_of(&service, &cookie));
        let record = record.unwrap_or_else(|| panic!("no record after {:?}", started.elapsed()));
        assert_eq!(record["outcome"], "partial", "{record}");

        let moved = record["received_bytes"].as_u64().unwrap_or(0)
            + record["sent_bytes"].as_u64().unwrap_or(0);
        assert!(
            moved > 0 && record["seconds"].as_f64() > Some(0.5),
            "{record}"
        );
    });
    expect_unaffected(healthy);
}

/// The server cannot know that a UDP receiver is frozen while its kernel takes everything; its time
/// is limited.
#[test]
fn a_frozen_udp_receiver_is_given_up_soon_after_the_time_of_its_test() {
    let service = service();
    let client = service.client(
        original(),
        &[
            "-u",
            "-R",
            "-b",
            "1M",
            "-t",
            "2",
            "-i",
            "0.2",
            "--forceflush",
        ],
    );
    client.wait_for_stdout("/sec", 2);
    client.signal(Signal::Stop);

    let records =
        service.wait_for_events("test_ended", 1, Duration::from_secs(2) + LIVENESS + MARGIN);
    assert_eq!(records[0]["outcome"], "partial");
}

/// One block every four seconds is slow, not dead.
#[test]
fn a_slow_test_is_not_taken_for_a_dead_one() {
    let service = Service::start(&["--liveness", "2"]);
    let options = ["-u", "-l", "1000", "-b", "2000", "-t", "9", "-J"];
    let client = service.client(original(), &options).finish();
    client.expect_clean();

    let records = service.wait_for_events("test_ended", 1, TIMEOUT);
    assert_eq!(records[0]["outcome"], "complete", "{records:?}");
    assert!(records[0]["received_bytes"].as_u64() >= Some(3000));
}

#[test]
fn the_report_of_a_frozen_client_is_complete_and_says_that_it_is_partial() {
    let server = Server::start(ours(), &["--lr-liveness", "1", "-i", "0.5", "--forceflush"]);
    let client = server.client(
        original(),
        "127.0.0.1",
        &["-t", "60", "-b", "20M", "-i", "0.2", "--forceflush"],
    );
    client.wait_for_stdout("/sec", 5);
    client.signal(Signal::Stop);
    server.process.wait_for_stdout("Server listening on", 2);

    let stdout = server.process.stdout();
    assert!(stdout.contains("receiver"), "{stdout}");
    for message in [
        "idle timeout for receiving data",
        "no sign of life from the client for 1 s, the result is partial",
    ] {
        // Another pipe, whose text may arrive later.
        let is_seen = || server.process.stderr().contains(message);
        assert!(wait_until(TIMEOUT, is_seen), "{}", server.process.stderr());
    }
}

/// The link goes down while tests run: no packet reaches the server, in either direction.
#[test]
fn timed_clients_that_are_cut_off_free_their_slots_and_delay_no_other() {
    let Some(net) = Net::new() else { return };
    let service = Service::spawn(
        inside(&net.b, ours().path(), &[]),
        5201,
        &["--liveness", "3"],
    );
    let _ = service.wait_for_events("listening", 1, TIMEOUT);
    let client = |mut command: Command, host: &str, options: &[&str]| {
        command.args(["-c", host]).args(options);
        Process::start(command)
    };
    let healthy: Vec<Process> = (0..HEALTHY)
        .map(|_| {
            client(
                inside(&net.b, original().path(), &[]),
                "127.0.0.1",
                &["-t", "9", "-b", "2M", "-J"],
            )
        })
        .collect();

    let kinds: [&[&str]; 5] = [&[], &["-R"], &["-u"], &["-u", "-R"], &["--bidir"]];
    let far: Vec<Process> = kinds
        .iter()
        .map(|kind| {
            let options = [
                &["-t", "60", "-b", "2M", "-i", "0.2", "--forceflush"],
                *kind,
            ]
            .concat();
            client(inside(&net.a, original().path(), &[]), SERVER, &options)
        })
        .collect();
    far.iter()
        .for_each(|client| client.wait_for_stdout("/sec", 3));
    net.cut();

    let cut = Instant::now();
    let records = service.wait_for_events("test_ended", far.len(), LIVENESS + MARGIN);
    let elapsed = cut.elapsed();
    assert!(elapsed < LIVENESS + MARGIN, "{elapsed:?}");
    assert!(
        records.iter().all(|r| r["outcome"] == "partial"),
        "{records:?}"
    );
    expect_unaffected(healthy);
}

/// The name of a test in the verbose output of its client.
fn cookie_of(stdout: &str) -> String {
    let line = stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("Cookie: "));
    line.expect("-V shows the cookie").trim().to_owned()
}

fn record_of(service: &Service, cookie: &str) -> Option<Value> {
    service
        .events("test_ended")
        .into_iter()
        .find(|r| r["cookie"] == cookie)
}

// Steps of the dialogue by hand

const TCP: &str = "{\"tcp\":true,\"time\":60,\"len\":1000}";
const UDP: &str = "{\"udp\":true,\"time\":60,\"len\":1000,\"bandwidth\":1000000}";

fn running(port: u16) -> RawClient {
    let mut client = RawClient::running(port, TCP);
    client.data.as_mut().expect("a stream").send(&[0; 1000]);
    client
}

fn ended(port: u16) -> RawClient {
    let mut client = running(port);
    client.end();
    client
}

fn all_but_the_last_message(port: u16) -> RawClient {
    let mut client = ended(port);
    let _ = client.exchange_results();
    client
}

// Many unknown clients

/// Connections of each kind.
const STRANGERS: usize = 1000;

#[test]
fn timed_thousands_of_idle_and_invalid_connections_do_not_block_a_client() {
    raise_descriptor_limit();
    let service = Service::start(&[]);
    let alone = start_time(service.port);
    let before = Status::of(service.process.id());
    let connect = || TcpStream::connect(("127.0.0.1", service.port)).expect("the server listens");
    let _silent: Vec<TcpStream> = (0..STRANGERS).map(|_| connect()).collect();

    let mut mad: Vec<Control> = (0..STRANGERS)
        .map(|n| {
            sending(
                service.port,
                &(0..200)
                    .map(|i| (n * 31 + i * 7) as u8 | 0x80)
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let _named: Vec<Control> = (0..STRANGERS)
        .map(|_| sending(service.port, &fresh_cookie()))
        .collect();
    let mut slow: Vec<Control> = (0..STRANGERS / 10)
        .map(|_| Control::connect(service.port))
        .collect();

    for byte in 0..3 {
        for control in &mut slow {
            control.send(&[b'a' + byte]);
        }

        let times: Vec<Duration> = (0..5).map(|_| start_time(service.port)).collect();
        let slowest = times.iter().max().expect("five");
        assert!(
            *slowest < Duration::from_millis(200),
            "{times:?}, alone {alone:?}"
        );

        let client = service.client(original(), &["-n", "64K"]).finish();
        client.expect_clean();
    }

    let during = Status::of(service.process.id());
    let grown_kib = during.resident_kib.saturating_sub(before.resident_kib);
    assert!(
        grown_kib < 32 * 1024,
        "{grown_kib} KiB for {STRANGERS} connections of each kind"
    );
    assert!(during.descriptors < 3000, "{}", during.descriptors);

    let end = Instant::now() + HANDSHAKE + MARGIN;
    for control in &mut mad {
        control.drain();
    }

    assert!(Instant::now() < end, "garbage is refused within its time");
}

/// A server that may open hardly anything does not spin, and serves again as soon as it can.
#[test]
fn timed_server_without_descriptors_uses_little_cpu_time() {
    let mut command = Command::new("prlimit");
    command.args(["--nofile=64:64"]).arg(ours().path());
    let service = Service::start_by(command, &[]);

    // All of them wait when the server looks again, so it cannot take them one by one.
    service.process.signal(Signal::Stop);
    let strangers: Vec<TcpStream> = (0..400)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", service.port)).ok())
        .collect();
    service.process.signal(Signal::Continue);

    let _ = service.wait_for_events("warning", 1, TIMEOUT);
    let (before, started) = (cpu_time(service.process.id()), Instant::now());
    wait_until(TIMEOUT, || started.elapsed() > Duration::from_secs(2));

    let used = cpu_time(service.process.id()) - before;
    assert!(
        used < Duration::from_millis(500),
        "{used:?} in {:?}",
        started.elapsed()
    );
    drop(strangers);

    let is_served = || service.client(original(), &["-n", "64K"]).finish().code() == Some(0);
    assert!(wait_until(TIMEOUT, is_served), "the client is served");
}

/// Time from the connection to the moment at which the server awaits the data streams.
fn start_time(port: u16) -> Duration {
    let started = Instant::now();
    let _client = RawClient::accepted(port, TCP);
    started.elapsed()
}

fn sending(port: u16, bytes: &[u8]) -> Control {
    let mut control = Control::connect(port);
    control.send(bytes);
    control
}

/// This process plays thousands of clients; each is a descriptor.
fn raise_descriptor_limit() {
    let id = std::process::id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &id, "--nofile=10000:"])
        .status();
    assert!(
        raised.is_ok_and(|s| s.success()),
        "prlimit raises the limit of this process"
    );
}
