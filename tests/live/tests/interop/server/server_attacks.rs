//! Clients that want the server's memory, its descriptors or all of its places. Others are served
//! all the same.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use linerate_interop::iperf2::Iperf2;
use linerate_interop::namespaces::{Net, inside};
use linerate_interop::{
    Control, FlowMode, Process, RawClient, Received, Service, Status, TIMEOUT, forged, free_port,
    fresh_cookie, limited, linerate, listens, original, ours, state, wait_for, wait_until,
};

fn with_descriptors(count: u32) -> Command {
    limited(&format!("ulimit -n {count}"))
}

/// Clients of both originals get their test.
#[track_caller]
fn expect_service(service: &Service, port2: u16) {
    service
        .client(original(), &["-n", "64K"])
        .finish()
        .expect_clean();
    let client = Iperf2::Original.client(port2, "-n 64K -f B").finish();
    assert!(client.stdout.contains("65536"), "{client:?} {service:?}");
}

#[test]
fn server_short_of_descriptors_refuses_with_a_reason_and_continues() {
    let (mut service, port2) = Service::start_both_by(with_descriptors(64), &[]);
    let clients: Vec<Process> = (0..30)
        .map(|_| Iperf2::Original.client(port2, "-t 2 -b 10m"))
        .collect();
    let refused = service.wait_for_events("refused", 1, TIMEOUT);
    assert!(
        refused.iter().all(|event| event["reason"] != "address"),
        "{refused:?}"
    );
    clients.into_iter().for_each(|client| drop(client.finish()));
    assert!(!service.process.has_ended(), "{service:?}");
    expect_service(&service, port2);
}

#[test]
fn drop_in_continues_when_descriptors_run_short() {
    let port = free_port();
    let mut command = with_descriptors(64);
    command.args(["iperf2", "-s", "-p", &port.to_string()]);

    let mut server = Process::start(command);
    server.wait_until_up(|| listens(port));
    let clients: Vec<Process> = (0..30)
        .map(|_| Iperf2::Original.client(port, "-t 1 -b 10m"))
        .collect();
    clients.into_iter().for_each(|client| drop(client.finish()));
    assert!(!server.has_ended(), "{server:?}");

    let client = Iperf2::Original.client(port, "-n 64K -f B").finish();
    assert!(client.stdout.contains("65536"), "{client:?} {server:?}");
}

#[test]
fn a_forged_first_datagram_takes_no_place_no_socket_and_no_thread() {
    let (service, port2) = Service::start_both(&[]);
    expect_service(&service, port2);
    let idle = Status::of(service.process.id());

    let forgers: Vec<UdpSocket> = (0..200)
        .map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback"))
        .collect();
    for forger in &forgers {
        forger
            .send_to(&forged(FlowMode::Forward, 1, 1000, 0), ("127.0.0.1", port2))
            .expect("loopback");
    }

    // The server reads what arrives in order: when this flow has ended it has seen all of them.
    let client = Iperf2::Original.client(port2, "-u -n 20000 -f B").finish();
    client.expect_stdout("Server Report:");
    let started = service.wait_for_events("test_started", 3, TIMEOUT);
    assert_eq!(started.len(), 3, "{started:?}");

    let _ = service.process.wait_for_idle(idle);
}

#[test]
fn forged_flows_have_a_share_of_the_places() {
    let (service, port2) = Service::start_both(&["--admit", "parallel:40"]);
    let addresses = (1..=40_u8).map(|last| SocketAddr::from(([127, 0, 7, last], 0)));
    let forgers: Vec<UdpSocket> = addresses
        .map(|a| UdpSocket::bind(a).expect("a loopback address"))
        .collect();

    // Datagrams may be lost, so they are sent until enough of them have been refused.
    let is_seen = || {
        for (forger, number) in forgers.iter().flat_map(|forger| [(forger, 1), (forger, 2)]) {
            let datagram = forged(FlowMode::Forward, number, 1000, 0);
            forger
                .send_to(&datagram, ("127.0.0.1", port2))
                .expect("loopback");
        }
        service.events("refused").len() >= 20
    };
    assert!(wait_until(TIMEOUT, is_seen), "{service:?}");
    let refused = service.events("refused");
    assert!(
        refused.iter().all(|event| event["reason"] == "flows"),
        "{refused:?}"
    );
    assert_eq!(service.events("test_started").len(), 10);
    expect_service(&service, port2);
}

#[test]
fn long_blocks_cost_memory_once() {
    let (service, port2) = Service::start_both(&[]);
    expect_service(&service, port2);
    let idle_kib = Status::of(service.process.id()).resident_kib;
    let client = Iperf2::Original.client(port2, "-R -l 4M -P 30 -t 2 -b 40m -i 1");
    client.wait_for_stdout("[SUM]", 1);

    let running_kib = Status::of(service.process.id()).resident_kib;
    assert!(
        running_kib < idle_kib + 64 * 1024,
        "{idle_kib} KiB, then {running_kib} KiB"
    );
    client.finish().expect_code(0);
}

#[test]
fn slow_tests_keep_the_memory_that_they_use() {
    const CLIENTS: usize = 50;
    let (service, port2) = Service::start_both(&[]);
    expect_service(&service, port2);
    let idle_kib = Status::of(service.process.id()).resident_kib;

    let slow = ["-t", "60", "-b", "100K", "-l", "1250", "--forceflush"];
    let clients: Vec<Process> = (0..CLIENTS)
        .map(|_| service.client(original(), &slow))
        .collect();
    for client in &clients {
        client.wait_for_stdout("1.00-2.00", 1);
    }

    // A buffer for reads of 256 KiB, of which a read uses a page, is not resident as a whole.
    let running_kib = Status::of(service.process.id()).resident_kib;
    let per_test_kib = running_kib.saturating_sub(idle_kib) / CLIENTS;
    assert!(per_test_kib <= 64, "{per_test_kib} KiB for each test");
}

/// An address space that holds the server and a few tests. What is beyond fails where it is asked
/// for: blocks, threads, rows of sockets.
#[test]
fn memory_that_cannot_be_had_costs_a_client_its_test_and_not_the_server() {
    for (limit, kib) in [("-v", 98_304), ("-d", 24_576)] {
        let command = limited(&format!("ulimit {limit} {kib}"));
        let (mut service, port2) =
            Service::start_both_by(command, &["--limit", "address:tests=1000"]);
        let clients: Vec<Process> = (0..20)
            .map(|_| {
                service.client(
                    original(),
                    &["-R", "-P", "8", "-l", "1M", "-b", "1M", "-t", "2"],
                )
            })
            .chain((0..5).map(|_| Iperf2::Original.client(port2, "-R -P 4 -l 4M -t 2 -b 10m")))
            .collect();
        let failed = clients
            .into_iter()
            .map(Process::finish)
            .filter(|client| client.code() != Some(0));
        assert!(failed.count() > 0, "ulimit {limit}: {service:?}");
        assert!(!service.process.has_ended(), "ulimit {limit}: {service:?}");
        expect_service(&service, port2);
    }
}

#[test]
fn what_the_tests_of_one_address_need_is_bounded() {
    // A quarter of what the process may have is for tests, and a quarter of that for one address:
    // 16 MiB.
    let (service, port2) = Service::start_both_by(limited("ulimit -d 262144"), &[]);
    let clients: Vec<Process> = (0..6)
        .map(|_| Iperf2::Original.client(port2, "-R -l 4M -t 2 -b 40m"))
        .collect();
    let refused = service.wait_for_events("refused", 1, TIMEOUT);
    assert!(
        refused.iter().all(|event| event["reason"] == "memory"),
        "{refused:?}"
    );
    clients.into_iter().for_each(|client| drop(client.finish()));
    expect_service(&service, port2);
}

/// True if something listens in the server's namespace.
fn listens_beside_in(net: &Net, port: u16) -> bool {
    let listening = inside(
        &net.b,
        "ss".as_ref(),
        &["-ltnH", "sport", "=", &format!(":{port}")],
    )
    .output();
    listening.is_ok_and(|output| !output.stdout.is_empty())
}

#[test]
fn many_connections_make_few_lines() {
    let (service, port2) = Service::start_both_by(with_descriptors(64), &[]);
    let held: Vec<TcpStream> = (0..100)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", port2)).ok())
        .collect();

    for _ in 0..500 {
        drop(TcpStream::connect(("127.0.0.1", port2)));
    }

    drop(held);
    expect_service(&service, port2);
    let lines = service.process.stdout().lines().count();
    assert!(lines < 300, "{lines} lines: {service:?}");
}

#[test]
fn trickling_client_does_not_keep_its_slot() {
    let service = Service::start(&["--liveness", "2"]);
    let mut client = RawClient::running(service.port, ENDLESS);
    let ended = wait_for(TIMEOUT, || {
        client.data.as_mut().expect("a stream").send(&[0]);
        // The server learns nothing from it; the answer is that the test has ended.
        let _ = client.control.response_within(Duration::from_millis(100));
        service.events("test_ended").pop()
    });
    let ended = ended.unwrap_or_else(|| panic!("{service:?}"));
    assert_eq!(ended["outcome"], "partial");
}

#[test]
fn one_address_has_a_tenth_of_the_places_and_at_least_eight() {
    let service = Service::start(&["--admit", "parallel:90"]);
    let mut kept: Vec<RawClient> = (0..9)
        .map(|_| RawClient::accepted(service.port, ENDLESS))
        .collect();
    let mut tenth = Control::connect(service.port);
    tenth.send(&fresh_cookie());
    assert_eq!(tenth.response(), Received::Byte(state::ACCESS_DENIED));
    assert_eq!(
        service.wait_for_events("refused", 1, TIMEOUT)[0]["reason"],
        "address_tests"
    );
    service
        .client(original(), &["-n", "64K", "-B", "127.0.0.9"])
        .finish()
        .expect_clean();
    kept.clear();
}

#[test]
fn a_test_of_more_than_an_hour_is_refused_unless_it_is_allowed() {
    let service = Service::start(&[]);
    let client = service.client(original(), &["-t", "3601"]).finish();
    client.expect_code(1).expect_stderr("int_errno=37");

    let longer = Service::start(&["--limit", "server:duration=7200"]);
    let client = longer.client(original(), &["-t", "3601", "--forceflush"]);
    client.wait_for_stdout("/sec", 1);
}

#[test]
fn service_opens_configured_ports_only() {
    let Some(net) = Net::new() else { return };
    for (words, is_open) in [(&["serve"][..], false), (&["serve", "--iperf2"], true)] {
        let server = Process::start(inside(&net.b, ours().path(), words));
        assert!(
            wait_until(TIMEOUT, || listens_beside_in(&net, 5201)),
            "{server:?}"
        );

        // The port of iperf 2 is opened after that of iperf3.
        let is_as_configured = || listens_beside_in(&net, 5001) == is_open;
        assert!(
            wait_until(TIMEOUT, is_as_configured),
            "{words:?}: {server:?}"
        );
        server.signal(linerate_interop::Signal::Terminate);
        server.finish().expect_code(0);
    }
}

/// The server of TCP tests beside the HTTP server is there when it is asked for, for those whom the
/// HTTP server serves.
#[test]
fn what_an_http_server_opens_has_one_policy() {
    let port = free_port();
    let serve = |tcp: Option<u16>| {
        let tcp = tcp.map_or(String::new(), |port| format!("--tcp={port}"));
        let port = free_port();
        let server = linerate(&format!(
            "http serve --no-control --bind 127.0.0.1:{port} --allow 203.0.113.0/24 {tcp}"
        ));
        server.wait_for_stdout("Listening on", 1);
        server
    };
    let server = serve(None);
    assert!(!server.stdout().contains("TCP tests"), "{server:?}");

    let server = serve(Some(port));
    server.wait_for_stdout("TCP tests", 1);

    let client = Process::start(original().command([
        "-c",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-n",
        "64K",
    ]));
    client
        .finish()
        .expect_code(1)
        .expect_stderr("test authorization failed");
}

/// A test without a time limit.
const ENDLESS: &str =
    r#"{"tcp":true,"omit":0,"time":0,"parallel":1,"len":1000,"client_version":"3.12"}"#;
