//! All attacks at the same time on a server with little memory and few descriptors: a client of
//! another address is served, and the server ends when it is asked to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::{
    ControlGroup, FlowMode, Process, Service, Signal, TIMEOUT, forged, frame, fresh_cookie,
    limited, original, ours_only, skip, state, wait_until,
};

/// Memory of the server's control group and of its data.
const MEMORY_BYTES: u64 = 512 << 20;

/// The server's ports.
#[derive(Clone, Copy)]
struct Target {
    iperf3: u16,
    iperf2: u16,
}

/// One way to want too much, repeated until the test has ended.
type Attack = fn(Target, &mut Held);

const ATTACKS: [Attack; 6] = [
    idle_connections,
    short_connections,
    long_blocks,
    forged_reverse,
    forged_forward,
    trickling_tests,
];

/// Connections that an attacker keeps open; the oldest goes first.
#[derive(Default)]
struct Held {
    connections: Vec<TcpStream>,
    tests: Vec<(TcpStream, TcpStream)>,
    round: u8,
}

impl Held {
    fn keep(&mut self, connection: Option<TcpStream>) {
        self.connections.extend(connection);
        let surplus = self.connections.len().saturating_sub(200);
        self.connections.drain(..surplus);
    }
}

fn connect(port: u16) -> Option<TcpStream> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()
}

fn idle_connections(target: Target, held: &mut Held) {
    held.keep(connect(target.iperf3));
    held.keep(connect(target.iperf2));
}

fn short_connections(target: Target, _: &mut Held) {
    drop(connect(target.iperf2));
    drop(connect(target.iperf3));
}

/// Asks for blocks of 4 MiB (`-R -l 4M`) and reads none.
fn long_blocks(target: Target, held: &mut Held) {
    let words: [u32; 15] = [
        0x4401_0078,
        1,
        5001,
        4 << 20,
        0,
        0x0004_0000,
        0,
        0,
        0x0400_0000,
        0x0002_0001,
        0x0008_0003,
        0,
        0,
        0,
        0,
    ];
    let header: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let connection = connect(target.iperf2).filter(|mut stream| stream.write_all(&header).is_ok());
    held.keep(connection);
}

fn forged_reverse(target: Target, held: &mut Held) {
    forge(
        target,
        held,
        &[
            FlowMode::Reverse,
            FlowMode::FullDuplex,
            FlowMode::Dual,
            FlowMode::TradeOff,
        ],
    );
}

fn forged_forward(target: Target, held: &mut Held) {
    forge(target, held, &[FlowMode::Forward]);
}

/// Two datagrams each from another address.
fn forge(target: Target, held: &mut Held, modes: &[FlowMode]) {
    held.round = held.round.wrapping_add(1);
    let Ok(socket) = UdpSocket::bind(SocketAddr::from(([127, 0, 7, held.round.max(1)], 0))) else {
        return;
    };

    for (mode, number) in modes.iter().flat_map(|mode| [(mode, 1), (mode, 2)]) {
        let datagram = forged(*mode, number, 1 << 31, 5001);
        // What the server does not take is lost, as in a network.
        let _ = socket.send_to(&datagram, ("127.0.0.1", target.iperf2));
    }
}

/// Tests without an end on which a byte arrives now and then.
fn trickling_tests(target: Target, held: &mut Held) {
    for (_, data) in &mut held.tests {
        // A test that was ended takes nothing.
        let _ = data.write_all(&[0]);
    }

    if held.tests.len() < 50
        && let Some(test) = running(target.iperf3)
    {
        held.tests.push(test);
    }
}

/// A running test of this address, if the server takes one more.
fn running(port: u16) -> Option<(TcpStream, TcpStream)> {
    let (cookie, mut control) = (fresh_cookie(), connect(port)?);
    send_text(&mut control, &cookie, state::PARAM_EXCHANGE)?;
    let parameters =
        frame("{\"tcp\":true,\"time\":0,\"parallel\":1,\"len\":1000,\"client_version\":\"3.12\"}");
    send_text(&mut control, &parameters, state::CREATE_STREAMS)?;

    let mut data = connect(port)?;
    data.write_all(&cookie).ok()?;
    Some((control, data))
}

/// Sends bytes and waits for this answer to them; the answer to a connection is a state as well.
fn send_text(control: &mut TcpStream, bytes: &[u8], expected: u8) -> Option<()> {
    control.write_all(bytes).ok()?;
    control
        .set_read_timeout(Some(Duration::from_secs(1)))
        .ok()?;
    let mut response = [0];
    control.read_exact(&mut response).ok()?;
    (response[0] == expected).then_some(())
}

/// Ends the attacks, however the test ends.
struct EndOfAttacks<'a>(&'a AtomicBool);

impl Drop for EndOfAttacks<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The program with 256 descriptors, little memory for its data, and in the group where there is
/// one.
fn in_group(group: Option<&ControlGroup>) -> Command {
    let join = group.map_or_else(String::new, |group| {
        format!("echo $$ > {};", group.processes().display())
    });
    limited(&format!("{join} ulimit -n 256; ulimit -d 524288"))
}

/// Longest time of a small test, and from SIGTERM to the end of the server.
const SERVED_WITHIN: Duration = Duration::from_secs(3);
const ENDS_WITHIN: Duration = Duration::from_secs(5);

#[test]
fn timed_under_all_attacks_at_once_another_client_is_served_and_the_server_ends_when_asked() {
    ours_only!("the original has no such service");
    let group = ControlGroup::with_memory(MEMORY_BYTES);
    if group.is_none() {
        skip(
            "no control group with a limit on memory can be made here (root is needed): ulimit \
             alone bounds it",
        );
    }

    let (mut service, iperf2) =
        Service::start_both_by(in_group(group.as_ref()), &["--log-level", "warn"]);
    let target = Target {
        iperf3: service.port,
        iperf2,
    };
    let is_over = AtomicBool::new(false);
    let repeat = |attack: Attack| {
        let mut held = Held::default();
        while !is_over.load(Ordering::Relaxed) {
            attack(target, &mut held);
        }
    };
    thread::scope(|scope| {
        let end = EndOfAttacks(&is_over);
        for attack in ATTACKS {
            scope.spawn(move || repeat(attack));
        }

        let _ = service.wait_for_events("refused", 50, TIMEOUT);
        for _ in 0..3 {
            let began = Instant::now();
            client(&service).finish().expect_clean();
            assert!(
                began.elapsed() <= SERVED_WITHIN,
                "served after {:?}",
                began.elapsed()
            );
        }

        service.process.signal(Signal::Terminate);
        assert!(
            wait_until(ENDS_WITHIN, || service.process.has_ended()),
            "{service:?}"
        );
        drop(end);
    });
    service.process.finish().expect_code(0);
}

/// A stock client of an address that does not attack.
fn client(service: &Service) -> Process {
    service.client(original(), &["-n", "64K", "-B", "127.0.0.99"])
}
