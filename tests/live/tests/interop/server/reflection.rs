//! Forged source addresses: a server of iperf 2's UDP sends a victim no more than the forger sent.
//! The victim of these tests is the socket that the forged datagrams leave from.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};

use linerate_interop::iperf2::{Iperf2, Iperf2Server};
use linerate_interop::{
    FORGED_BYTES, FlowMode, Service, TIMEOUT, forged, linerate, ours_only, wait_for, wait_until,
};

/// 2^31 steps of 10 ms, the longest time a header can ask for.
const LONGEST_TICKS: u32 = 1 << 31;

/// An address that is not asked, and what was sent in its name.
struct Victim {
    socket: UdpSocket,
    forged_bytes: usize,
    received_bytes: usize,
}

impl Victim {
    fn of(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        socket.connect(("127.0.0.1", port)).expect("a route");
        socket.set_nonblocking(true).expect("a socket");
        Self {
            socket,
            forged_bytes: 0,
            received_bytes: 0,
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("it is bound").port()
    }

    fn forge(&mut self, mode: FlowMode, numbers: &[i32], ticks: u32) {
        for &number in numbers {
            let datagram = forged(mode, number, ticks, self.port());
            self.forged_bytes += self.socket.send(&datagram).unwrap_or(FORGED_BYTES);
        }
    }

    fn receive(&mut self) -> usize {
        let mut buffer = [0; 65_535];
        while let Ok(n) = self.socket.recv(&mut buffer) {
            self.received_bytes += n;
        }
        self.received_bytes
    }

    fn is_flooded(&mut self) -> bool {
        self.receive() > self.forged_bytes
    }
}

/// Waits until there are `count` refusals for `reason`, or the victim got more than was sent in its
/// name.
#[track_caller]
fn expect_refusals(service: &Service, victims: &mut [Victim], reason: &str, count: usize) {
    let refused = || {
        let events = service.events("refused");
        events
            .iter()
            .filter(|event| event["reason"] == reason)
            .count()
    };
    let is_seen = wait_until(TIMEOUT, || {
        victims.iter_mut().any(Victim::is_flooded) || refused() >= count
    });

    for victim in victims.iter_mut() {
        let received = victim.receive();
        assert!(
            received <= victim.forged_bytes,
            "{received} bytes for {} forged",
            victim.forged_bytes
        );
    }

    assert!(is_seen, "no {count} refusals ({reason}): {service:?}");
}

#[test]
fn a_service_sends_no_data_over_udp_to_an_address_that_may_be_forged() {
    ours_only!("the original has no such service");
    let (service, port2) = Service::start_both(&[]);

    let modes = [
        FlowMode::Reverse,
        FlowMode::FullDuplex,
        FlowMode::Dual,
        FlowMode::TradeOff,
    ];
    let mut victims: Vec<Victim> = modes.iter().map(|_| Victim::of(port2)).collect();
    for (victim, mode) in victims.iter_mut().zip(modes) {
        victim.forge(mode, &[1, 2, 3], LONGEST_TICKS);
    }

    expect_refusals(&service, &mut victims, "udp_reverse", modes.len());
    assert_eq!(service.events("test_started"), [] as [serde_json::Value; 0]);
}

#[test]
fn responses_are_not_longer_than_requests() {
    ours_only!("the original answers with more");
    let (service, port2) = Service::start_both(&[]);
    let mut victim = Victim::of(port2);
    victim.forge(FlowMode::Forward, &[1, 2, -3], 100);
    assert!(wait_until(TIMEOUT, || victim.receive() > 0), "{service:?}");

    // Every one of these would be worth another report of 128 bytes.
    for _ in 0..20 {
        let datagram = forged(FlowMode::Forward, -3, 100, 0);
        victim.forged_bytes += victim.socket.send(&datagram[..16]).unwrap_or(16);
    }

    assert!(
        wait_until(TIMEOUT, || !service.events("test_ended").is_empty()),
        "{service:?}"
    );
    assert!(
        !victim.is_flooded(),
        "{} for {}",
        victim.received_bytes,
        victim.forged_bytes
    );
}

#[test]
fn a_service_that_may_send_over_udp_serves_the_original() {
    let (service, port2) = Service::start_both(&["--iperf2-udp-reverse", "--allow", "127.0.0.0/8"]);
    for words in ["-u -R -t 1 -f B", "-u --full-duplex -t 1 -f B"] {
        Iperf2::Original
            .client(port2, words)
            .finish()
            .expect_code(0);
    }

    let ended = service.wait_for_events("test_ended", 2, TIMEOUT);
    let sent = |event: &serde_json::Value| event["sent_bytes"].as_u64().unwrap_or(0);
    assert!(ended.iter().all(|event| sent(event) > 50_000), "{ended:?}");
}

#[test]
fn data_over_udp_end_when_the_port_is_unreachable() {
    let (service, port2) = Service::start_both(&["--iperf2-udp-reverse", "--allow", "127.0.0.0/8"]);
    let mut victim = Victim::of(port2);
    victim.forge(FlowMode::Reverse, &[1, 1], 100_000);

    let _ = service.wait_for_events("test_started", 1, TIMEOUT);
    assert!(wait_until(TIMEOUT, || victim.is_flooded()), "{service:?}");
    drop(victim);

    // Its time would be a quarter of an hour.
    let _ = service.wait_for_events("test_ended", 1, TIMEOUT);
}

#[test]
fn data_over_udp_end_when_the_client_falls_silent() {
    let (service, port2) = Service::start_both(&["--iperf2-udp-reverse", "--allow", "127.0.0.0/8"]);
    for mode in [FlowMode::FullDuplex, FlowMode::Dual] {
        let mut victim = Victim::of(port2);
        victim.forge(mode, &[1, 2], 100_000);
        let count = service.events("test_ended").len() + 1;
        let has_ended = || {
            victim.receive();
            service.events("test_ended").len() >= count
        };
        assert!(wait_until(TIMEOUT, has_ended), "{mode:?}: {service:?}");
    }
}

#[test]
fn absurd_amounts_are_refused() {
    let (service, port2) = Service::start_both(&["--iperf2-udp-reverse", "--allow", "127.0.0.0/8"]);
    let mut victims = [Victim::of(port2)];
    victims[0].forge(FlowMode::Reverse, &[1, 2], LONGEST_TICKS);
    expect_refusals(&service, &mut victims, "duration", 1);
}

#[test]
fn udp_reverse_is_offered_to_named_addresses_only() {
    let refused = linerate("serve --iperf2 --iperf2-udp-reverse").finish();
    refused.expect_code(2).expect_stderr("--allow");
}

/// Called as the original it does as the original does, within bounds.
#[test]
fn the_drop_in_stops_at_an_unreachable_port_and_refuses_absurd_amounts() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u -f B");
    let mut patient = Victim::of(server.port);
    patient.forge(FlowMode::Reverse, &[1, 2], LONGEST_TICKS);

    let mut victim = Victim::of(server.port);
    victim.forge(FlowMode::Reverse, &[1, 1], 100_000);
    assert!(wait_until(TIMEOUT, || victim.is_flooded()));
    drop(victim);
    server.process.wait_for_stdout("/sec", 1);
    assert!(!patient.is_flooded(), "{}", patient.received_bytes);
}

/// A header of iperf 2 over TCP that asks the server to send at the same time (`-d`), to this port.
fn dual_header(port: u16) -> Vec<u8> {
    let (flags, amount, version) = (0xC401_0079, 0x0004_0000, [0x0002_0001, 0x0008_0003]);
    let mut words = [
        flags,
        1,
        port.into(),
        0,
        0,
        amount,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0_u32,
    ];
    words[9..11].copy_from_slice(&version);

    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn a_server_connects_back_to_the_address_of_the_client_alone() {
    ours_only!("the original has no such service");
    let (service, port2) = Service::start_both(&[]);
    let own = TcpListener::bind("127.0.0.1:0").expect("a loopback address");
    let port = own.local_addr().expect("it is bound").port();

    // The address that the client called the server by.
    let other = TcpListener::bind(("127.0.0.77", port)).expect("the port is free");
    for listener in [&own, &other] {
        listener.set_nonblocking(true).expect("a listener");
    }

    let mut client = TcpStream::connect(("127.0.0.77", port2)).expect("the server listens");
    client
        .write_all(&dual_header(port))
        .expect("the server reads");
    client.write_all(&[0; 128 << 10]).expect("the server reads");

    let back = wait_for(TIMEOUT, || own.accept().ok());
    assert!(back.is_some(), "the server connects back: {service:?}");
    assert!(other.accept().is_err(), "no other address was connected to");
}
