//! Goal: STAMP in both roles, and a reflector that is useless to who forges addresses. Method: the
//! implementation of others in two namespaces, a router that drops, forged sources on loopback.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

use linerate_interop::namespaces::{CLIENT, CLIENT_PORT, DEVICE, Net, SERVER, SERVER_PORT, run};
use linerate_interop::{
    NativeHost, Process, Service, Signal, Status, TIMEOUT, free_port, ours, skip, udp_socket,
    wait_until,
};
use serde_json::Value;

/// STAMP of others, unmodified, which `.ci/stamp-suite` installs.
fn stamp_suite() -> Option<PathBuf> {
    let tools = std::env::var("TOOLS").unwrap_or_else(|_| "target/tools".to_owned());
    let program = PathBuf::from(tools).join("bin/stamp-suite");
    if !program.exists() {
        skip("stamp-suite is not installed: .ci/stamp-suite FOLDER");
        return None;
    }
    Some(program)
}

/// A service whose reflector answers these addresses, and the port of that.
fn reflector(allow: &str) -> (Service, u16) {
    let port = free_port();
    let service = Service::start(&["--stamp", &port.to_string(), "--allow", allow]);
    service.wait_for_events("stamp", 1, TIMEOUT);
    (service, port)
}

/// A packet with this sequence number and session identifier.
fn packet(sequence: u32, session: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len.max(16)];
    packet[..4].copy_from_slice(&sequence.to_be_bytes());
    packet[14..16].copy_from_slice(&session.to_be_bytes());
    packet.truncate(len);
    packet
}

/// Sequence number of the next answer.
#[track_caller]
fn answer(socket: &UdpSocket) -> u32 {
    let mut answer = [0; 64];
    let len = socket.recv(&mut answer).expect("an answer");
    assert_eq!(len, 44);
    u32::from_be_bytes(answer[..4].try_into().expect("four bytes"))
}

#[test]
fn sender_measures_the_reflector_of_others() {
    let (Some(program), Some(net)) = (stamp_suite(), Net::new()) else {
        return;
    };
    let (client, server) = NativeHost::both(&net);

    for is_counting in [true, false] {
        let words: &[&str] = match is_counting {
            true => &["--is-reflector", "--stateful-reflector"],
            false => &["--is-reflector"],
        };
        let reflector = Process::start(server.command_of(&program, words));
        let is_up = || reflector.stderr().contains("listening on");
        assert!(wait_until(TIMEOUT, is_up), "{reflector:?}");

        let report = client.report(SERVER, &["--only", "stamp", "--samples"]);
        let (rtt, stamp) = (&report["idle"]["rtt"], &report["stamp"]);
        assert_eq!(report["target"]["dialect"], "stamp");
        assert_eq!(report["target"]["port"], 862);
        assert_eq!((&rtt["n"], &stamp["sent"]), (&100.into(), &100.into()));
        assert!(rtt["p50_ns"].as_i64() > Some(0), "{report:#}");
        assert!(stamp["queue_up"]["p95_ns"].is_i64(), "{report:#}");
        assert_eq!(stamp["ttl_up"], 255);
        assert_eq!(
            report["samples"][0]["rtt_ns"].as_array().map(Vec::len),
            Some(100)
        );

        // Its clock is not synchronized, unless it is started with --clock-synchronized.
        assert!(report["absent"]["one-way delay"].is_string(), "{report:#}");
        assert_eq!(report["idle"]["one_way_up"], Value::Null);
        let reason = report["absent"]["loss by direction"].as_str();
        match is_counting {
            true => assert_eq!((&stamp["lost_up"], reason), (&0.into(), None)),
            false => {
                assert_eq!(stamp["lost_up"], Value::Null);
                assert!(
                    reason.is_some_and(|text| text.contains("stateless")),
                    "{report:#}"
                );
            }
        }
        reflector.signal(Signal::Terminate);
        reflector.finish();
    }
}

#[test]
fn reflector_answers_the_sender_of_others() {
    let (Some(program), Some(net)) = (stamp_suite(), Net::new()) else {
        return;
    };
    let (client, server) = NativeHost::both(&net);
    let _service = server.serve(&["--stamp", "--allow", CLIENT]);
    let session = [
        "--remote-addr",
        SERVER,
        "--count",
        "50",
        "--send-delay",
        "5",
    ];
    let words = [
        "-R",
        "--ssid",
        "77",
        "--output-format",
        "json",
        "--timeout",
        "1",
    ];

    // With an extension of another type than padding, too.
    for more in [&[][..], &["--extra-padding", "200", "--cos"]] {
        let words = [&session[..], &words, more].concat();
        let sender = Process::start(client.command_of(&program, &words)).finish();
        let summary = sender.expect_code(0).json();
        assert_eq!(summary["packets_received"], 50, "{sender:?}");
        let found = &summary["measurements"];
        assert_eq!(found["last_reflector_sequence"], 49, "{sender:?}");
        assert_eq!(found["unknown_replies"], 0, "{sender:?}");
        assert!(summary["min_rtt_ms"].as_f64() > Some(0.0), "{sender:?}");
        assert!(sender.stderr.contains("ttl=255"), "{sender:?}");
    }
}

/// A sender takes answers from the address alone that it sent to.
#[test]
fn answers_come_from_the_address_that_was_asked() {
    let Some(net) = Net::new() else { return };
    let (client, server) = NativeHost::both(&net);
    run(&format!(
        "ip -n {} addr add 10.99.0.3/24 dev {DEVICE}",
        net.b
    ));
    run(&format!(
        "ip -n {} -6 addr add fd99::3/64 dev {DEVICE} nodad",
        net.b
    ));
    run(&format!(
        "ip -n {} -6 addr add fd99::4/64 dev {DEVICE} nodad",
        net.b
    ));
    run(&format!(
        "ip -n {} -6 addr add fd99::1/64 dev {DEVICE} nodad",
        net.a
    ));
    let _service = server.serve(&["--stamp", "--allow", CLIENT, "--allow", "fd99::1"]);

    for address in [SERVER, "10.99.0.3", "fd99::3", "fd99::4"] {
        let report = client.report(address, &["--only", "stamp", "-t", "1"]);
        assert_eq!(report["idle"]["rtt"]["n"], 50, "{address}: {report:#}");
    }
}

#[test]
fn losses_of_each_direction_are_those_that_the_path_drops() {
    let Some(net) = Net::routed() else { return };
    let (client, server) = NativeHost::both(&net);
    let _service = server.serve(&["--stamp", "--allow", CLIENT]);
    let rule = |port: &str, what: &str, every: u32| {
        format!(
            "iifname {port} udp {what} 862 numgen inc mod {every} == {} drop;",
            every - 2
        )
    };
    net.in_middle(&format!(
        "nft 'table ip t {{ chain c {{ type filter hook forward priority 0; {} {} }}; }}'",
        rule(CLIENT_PORT, "dport", 10),
        rule(SERVER_PORT, "sport", 5)
    ));

    // 200 packets: a tenth of them does not reach the reflector, and a fifth of 180 answers is
    // lost.
    let report = client.report(SERVER, &["--only", "stamp", "-t", "4"]);
    let stamp = &report["stamp"];
    let lost = ["lost_up", "lost_down", "lost_unplaced"].map(|name| stamp[name].as_u64());
    assert_eq!(lost, [Some(20), Some(36), Some(0)], "{report:#}");
    assert_eq!(report["idle"]["rtt"]["lost"], 56, "{report:#}");
    assert_eq!(stamp["ttl_up"], 254, "one router");

    let words = [
        "--only",
        "stamp",
        "-t",
        "1",
        "-q",
        "--expect",
        "loss.up<15%,loss.down<15%",
    ];
    let judged = client.test(SERVER, &words).finish();
    judged.expect_code(5).expect_stderr("loss.down");
}

#[test]
fn ports_without_a_reflector_are_named() {
    let (client, port) = (NativeHost::here(), free_port());
    let port = port.to_string();
    let words = ["--only", "stamp", "-t", "1", "-p", &port];
    let closed = client.test("127.0.0.1", &words).finish();
    closed
        .expect_code(4)
        .expect_stderr("no program listens at this UDP port");

    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let port = silent.local_addr().expect("it is bound").port().to_string();
    let words = ["--only", "stamp", "-t", "1", "-p", &port];
    let unanswered = client.test("127.0.0.1", &words).finish();
    unanswered
        .expect_code(4)
        .expect_stderr("no session reflector answers");

    for (more, text) in [
        (&["--only", "stamp,idle"][..], "combined with another phase"),
        (&["--only", "stamp", "--native"], "combined with --native"),
    ] {
        client
            .test("127.0.0.1", more)
            .finish()
            .expect_code(2)
            .expect_stderr(text);
    }
}

#[test]
fn reflector_needs_an_access_list() {
    let words = ["serve", "--stamp"];
    let refused = Process::start(NativeHost::here().command_of(ours().path(), &words)).finish();
    refused
        .expect_code(2)
        .expect_stderr("add --allow 192.0.2.0/24");
}

/// The list is that of all dialects: a reload changes it for the reflector, too.
#[test]
fn sources_that_are_not_allowed_get_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("allowed");
    fs::write(&list, "127.0.0.2\n").expect("a file");
    let (service, port) = reflector(&format!("@{}", list.display()));
    let [stranger, allowed] =
        ["127.0.0.3", "127.0.0.2"].map(|address| udp_socket(address, port, TIMEOUT));

    let nothing_for = |denied: &UdpSocket, allowed: &UdpSocket, sequence: u32| {
        denied.send(&packet(1, 0, 44)).expect("it leaves");
        allowed.send(&packet(1, 0, 44)).expect("it leaves");
        // Packets are answered in their order.
        assert_eq!(answer(allowed), sequence);
        denied.set_nonblocking(true).expect("a socket");
        assert!(
            denied.recv(&mut [0; 64]).is_err(),
            "an answer to a stranger"
        );
        denied.set_nonblocking(false).expect("a socket");
    };
    nothing_for(&stranger, &allowed, 0);

    fs::write(&list, "127.0.0.3\n").expect("a file");
    service.process.signal(Signal::HangUp);
    service.wait_for_events("reloaded", 1, TIMEOUT);
    nothing_for(&allowed, &stranger, 0);
}

#[test]
fn answers_are_never_longer_than_packets() {
    let (_service, port) = reflector("127.0.0.1");
    let socket = udp_socket("127.0.0.1", port, TIMEOUT);
    let lens = [0, 1, 14, 40, 41, 43, 44, 45, 60, 1472, 9000, 65_000];
    for len in lens {
        socket.send(&packet(7, 0, len)).expect("it leaves");
    }

    let mut buffer = vec![0; 1 << 16];
    for len in lens.into_iter().filter(|len| *len >= 41) {
        assert_eq!(socket.recv(&mut buffer).expect("an answer"), len);
    }

    // From the port of a service nothing is answered: two reflectors would answer each other.
    let Ok(service) = UdpSocket::bind("127.0.0.1:7") else {
        return skip("port 7 cannot be bound");
    };
    service.connect(("127.0.0.1", port)).expect("a route");
    service.send(&packet(7, 0, 44)).expect("it leaves");
    socket.send(&packet(8, 0, 44)).expect("it leaves");
    assert_eq!(answer(&socket), 8);
    service.set_nonblocking(true).expect("a socket");
    assert!(service.recv(&mut buffer).is_err(), "an answer to a service");
}

#[test]
fn sessions_of_100_000_forged_sources_have_bounded_memory() {
    const SESSIONS: u32 = 100_000;
    const WINDOW: u32 = 50;
    let (service, port) = reflector("127.0.0.0/8");
    let own = udp_socket("127.0.0.1", port, TIMEOUT);
    own.send(&packet(0, 0, 44)).expect("it leaves");
    assert_eq!(answer(&own), 0);
    let before = Status::of(service.process.id());

    // A source is an address, a port and an identifier.
    for group in 0..SESSIONS / 50_000 {
        let source = udp_socket(&format!("127.1.0.{}", group + 1), port, TIMEOUT);
        for first in (0..50_000).step_by(WINDOW as usize) {
            for session in first..first + WINDOW {
                let session = u16::try_from(session).expect("below 50,000");
                source.send(&packet(0, session, 44)).expect("it leaves");
            }
            (0..WINDOW).for_each(|_| assert_eq!(answer(&source), 0));
        }
    }

    let grown = Status::of(service.process.id())
        .anonymous_kib
        .saturating_sub(before.anonymous_kib);
    assert!(grown < 16 << 10, "{grown} KiB");
    own.send(&packet(1, 0, 44)).expect("it leaves");
    assert_eq!(answer(&own), 0, "its session was replaced");

    // Another dialect is served meanwhile.
    let client = NativeHost::here();
    let target = format!("127.0.0.1:{}", service.port);
    client.report(&target, &["--only", "idle"]);
}

#[test]
fn text_of_a_session_has_the_delay_and_both_directions() {
    let (_service, port) = reflector("127.0.0.1");
    let client = NativeHost::here();
    let port = port.to_string();
    let words = ["--only", "stamp", "-t", "1", "-p", &port];
    let finished = client
        .test("127.0.0.1", &words)
        .finish_within(Duration::from_secs(30));
    let text = finished.expect_code(0);
    text.expect_stdout(&format!("127.0.0.1:{port}  RTT "));
    for part in [
        "RTT p50",
        "0 of 50 lost",
        "above the smallest delay",
        "Loss     up 0 of 50, down 0 of 50",
    ] {
        text.expect_stdout(part);
    }
}
