//! A server in 512 MB with 1,024 descriptors that is attacked from three addresses: clients of a
//! fourth are served in time, its memory stays small, and it ends when it is asked to.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use linerate_interop::{
    Attacker, ControlGroup, NativeHost, Service, Signal, Status, TIMEOUT, fresh_cookie, give_way,
    original, ours, report, skip, state, wait_until,
};
use linerate_sys::process;
use serde_json::Value;

/// One way to want too much; an attacker repeats it.
pub(super) type Attack = fn(&Attacker<'_>);

/// The server, and the state directory of its key.
pub(super) struct AttackedServer {
    service: Service,
    _host: NativeHost,
    /// Removed after the server has ended.
    _group: Option<ControlGroup>,
}

/// Demands on a server under attack.
struct Demands {
    /// Time of the attacks.
    length: Duration,
    /// From the cookie of a client to its answer, all the time.
    answered_within: Duration,
    /// From the start of a client until it is served.
    served_within: Duration,
    /// From SIGTERM to the end.
    ends_within: Duration,
    /// Memory that counts. A program without optimisation has 60 MB of code.
    memory_kib: fn(&Status) -> usize,
    /// Words of a native test.
    test: &'static [&'static str],
}

/// Memory of the server's control group and of its data.
const MEMORY_BYTES: u64 = 512 << 20;
/// Share that the server may have of it.
const MEMORY_KIB_MAX: usize = 128 << 10;
/// Addresses of the attackers, and that of the client that is to be served.
const ATTACKERS: [Ipv4Addr; 3] = [
    Ipv4Addr::new(127, 0, 7, 1),
    Ipv4Addr::new(127, 0, 7, 2),
    Ipv4Addr::new(127, 0, 7, 3),
];
const VICTIM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);

impl Demands {
    /// `LINERATE_ATTACK_SECONDS` is for an optimised program on an idle machine. Otherwise the
    /// attacks take seconds, and a busy machine is no defect.
    fn new() -> Self {
        match env::var("LINERATE_ATTACK_SECONDS")
            .ok()
            .and_then(|seconds| seconds.parse().ok())
        {
            Some(seconds) => Self {
                length: Duration::from_secs(seconds),
                answered_within: Duration::from_secs(1),
                served_within: Duration::from_secs(1),
                ends_within: Duration::from_secs(2),
                memory_kib: |status| status.resident_kib,
                test: &["--profile", "quick", "-b", "100M"],
            },
            None => Self {
                length: Duration::from_secs(6),
                answered_within: Duration::from_millis(1500),
                served_within: Duration::from_secs(3),
                ends_within: Duration::from_secs(5),
                memory_kib: |status| status.anonymous_kib,
                test: &[
                    "--profile",
                    "quick",
                    "--only",
                    "idle,down,up",
                    "--time",
                    "1",
                    "-b",
                    "100M",
                ],
            },
        }
    }
}

impl AttackedServer {
    /// Starts `linerate serve` with these words.
    #[track_caller]
    pub(super) fn start(words: &[&str]) -> Self {
        // The attackers need more descriptors than the server has.
        process::raise_fd_limit().expect("a limit that can be read");
        let group = ControlGroup::with_memory(MEMORY_BYTES);
        if group.is_none() {
            skip(
                "no control group with a limit on memory can be made here (root is needed): ulimit \
                 alone bounds it",
            );
        }

        let join = group.as_ref().map_or_else(String::new, |group| {
            format!("echo $$ > {};", group.processes().display())
        });
        let limits = format!(
            "{join} ulimit -n 1024; ulimit -d {}; exec \"$@\"",
            MEMORY_BYTES >> 10
        );

        let host = NativeHost::here();
        let program = ours().path().to_str().expect("a plain path");
        let command = host.command_of(Path::new("sh"), &["-c", &limits, "sh", program]);
        let service = Service::spawn(command, linerate_interop::free_port(), words);
        service.wait_for_events("listening", 1, TIMEOUT);

        Self {
            service,
            _host: host,
            _group: group,
        }
    }

    /// Attacks the server in all of these ways at once, while clients of both dialects are served.
    #[track_caller]
    pub(super) fn withstands(self, attacks: &[Attack]) {
        let demands = Demands::new();
        self.withstands_while(attacks, |service| {
            serve_stock_client(service, &["-n", "64K"], demands.served_within);
            serve_native_client(service, &demands);
        });
    }

    /// Attacks the server in all of these ways at once, while `serve` serves other clients again
    /// and again.
    #[track_caller]
    pub(super) fn withstands_while(mut self, attacks: &[Attack], serve: impl Fn(&Service)) {
        let demands = Demands::new();
        let (is_over, is_stopping) = (AtomicBool::new(false), AtomicBool::new(false));
        let (largest_kib, longest_ms) = (AtomicUsize::new(0), AtomicU64::new(0));
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, self.service.port));
        let other = Attacker::new(VICTIM, VICTIM, server, &is_stopping);
        let process = self.service.process.id();
        let service = &mut self.service;

        thread::scope(|scope| {
            let ends = [EndOfAttacks(&is_stopping), EndOfAttacks(&is_over)];
            for (from, attack) in ATTACKERS
                .iter()
                .flat_map(|from| attacks.iter().map(move |attack| (*from, *attack)))
            {
                let attacker = Attacker::new(from, VICTIM, server, &is_over);
                let has_company = attacks.len() > 1;
                scope.spawn(move || {
                    if has_company {
                        give_way();
                    }
                    attacker.repeat(attack);
                });
            }

            scope.spawn(|| watch_memory(process, demands.memory_kib, &is_stopping, &largest_kib));
            scope.spawn(|| watch_answers(&other, &longest_ms));

            let began = Instant::now();
            while began.elapsed() < demands.length {
                serve(service);
            }

            is_stopping.store(true, Ordering::Relaxed);
            service.process.signal(Signal::Terminate);
            let has_ended = wait_until(demands.ends_within, || service.process.has_ended());
            assert!(
                has_ended,
                "not ended within {:?}: {service:?}",
                demands.ends_within
            );
            drop(ends);
        });

        let (largest_kib, longest_ms) = (largest_kib.into_inner(), longest_ms.into_inner());
        report(&format!(
            "at most {largest_kib} KiB and {longest_ms} ms to an answer"
        ));
        assert!(
            largest_kib <= MEMORY_KIB_MAX,
            "{largest_kib} KiB: {:?}",
            self.service
        );

        let answered_within = demands.answered_within.as_millis();
        assert!(
            u128::from(longest_ms) <= answered_within,
            "an answer after {longest_ms} ms: {:?}",
            self.service
        );
        self.service.process.finish().expect_code(0);
    }
}

/// Ends what waits for this, however the test ends.
struct EndOfAttacks<'a>(&'a AtomicBool);

impl Drop for EndOfAttacks<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Largest memory of the server during the attacks.
fn watch_memory(
    process: u32,
    kib: fn(&Status) -> usize,
    is_over: &AtomicBool,
    largest_kib: &AtomicUsize,
) {
    while !is_over.load(Ordering::Relaxed) {
        if let Some(status) = Status::while_it_runs(process) {
            largest_kib.fetch_max(kib(&status), Ordering::Relaxed);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Longest time from a connection to the answer to its cookie.
fn watch_answers(other: &Attacker<'_>, longest_ms: &AtomicU64) {
    while other.goes_on() {
        let began = Instant::now();
        let answer = other.connect().and_then(|mut stream| {
            stream.set_read_timeout(Some(TIMEOUT)).ok()?;
            stream.write_all(&fresh_cookie()).ok()?;
            let mut answer = [0];
            stream.read_exact(&mut answer).ok()?;
            Some(answer)
        });

        // A server that ends answers nothing.
        if other.goes_on() {
            let elapsed = if answer == Some([state::PARAM_EXCHANGE]) {
                began.elapsed()
            } else {
                TIMEOUT
            };
            longest_ms.fetch_max(
                u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                Ordering::Relaxed,
            );
        }

        other.pause(Duration::from_millis(50));
    }
}

/// A test of the original that moves its data in time.
#[track_caller]
pub(super) fn serve_stock_client(service: &Service, words: &[&str], served_within: Duration) {
    let began = Instant::now();
    let client = service
        .client(original(), &[words, &["-B", &VICTIM.to_string()]].concat())
        .finish();
    client.expect_clean();
    assert!(
        began.elapsed() <= served_within,
        "served after {:?}: {client:?} {service:?}",
        began.elapsed()
    );
}

/// A native test that starts in time and measures both directions.
#[track_caller]
fn serve_native_client(service: &Service, demands: &Demands) {
    let began = Instant::now();
    let (client, victim) = (NativeHost::here(), VICTIM.to_string());
    let target = format!("127.0.0.1:{}", service.port);
    let test = client.test(
        &target,
        &[demands.test, &["--jsonl", "-q", "-B", &victim]].concat(),
    );
    let is_started = wait_until(TIMEOUT, || test.stdout().contains("\"started\""));
    let served_after = began.elapsed();
    assert!(
        is_started && served_after <= demands.served_within,
        "served after {served_after:?}: {test:?} {service:?}"
    );

    let finished = test.finish_within(Duration::from_secs(90));
    finished.expect_code(0);
    let mut events = finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let trial = events
        .find(|event| event["event"] == "trial")
        .expect("a report");

    for member in ["down_bps", "up_bps"] {
        let phases = trial["report"]["phases"].as_array().expect("phases");
        let is_measured = phases
            .iter()
            .any(|phase| phase[member].as_f64().is_some_and(|bps| bps > 0.0));
        assert!(is_measured, "no {member}: {finished:?} {service:?}");
    }
}
