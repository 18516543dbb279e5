//! Random tests from eight clients with random ends, for a long time: nothing piles up and nothing
//! is lost from the record. `make live SUITE=soak` runs it; `SOAK_SECONDS` sets its length.

#![allow(clippy::print_stdout, reason = "the table is the result")]

use std::collections::BTreeMap;
use std::env;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::{Process, Service, Signal, Status, original, ours, wait_for, wait_until};
use serde_json::Value;

const CLIENTS: u64 = 8;
/// The UDP socket is opened by the first UDP test.
const LATER_DESCRIPTORS: usize = 1;
/// Time after which every pool and cache of the server has its size.
const WARM_UP: Duration = Duration::from_secs(30);
/// Memory that an allocator may keep without a leak.
const RESIDENT_TOLERANCE_KIB: usize = 8 * 1024;

const KINDS: [&str; 12] = [
    "-b 5M",
    "-b 5M -R",
    "-b 5M --bidir",
    "-u -b 5M",
    "-u -b 5M -R",
    "-u -b 5M --bidir",
    "-b 5M -P 4",
    "-u -b 1M -P 3 -R",
    "-n 5M",
    "-k 20 -R",
    "-b 5M --get-server-output",
    "-b 100M -w 64K",
];

/// Result of one client.
struct Fate {
    options: String,
    killed: bool,
    code: Option<i32>,
    stdout: String,
}

#[test]
#[ignore = "a soak test of forty minutes: make live SUITE=soak"]
fn random_clients_with_random_ends_leave_nothing_behind() {
    let seconds = env::var("SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2400);
    let service = Service::start(&["--liveness", "3"]);
    let started = Status::of(service.process.id());
    let warm_up = run(&service, WARM_UP.min(Duration::from_secs(seconds)), 1);
    let before = idle(&service, &started);
    let fates = run(&service, Duration::from_secs(seconds), 2);
    let after = idle(&service, &started);

    println!(
        "{} tests, {} of them killed or frozen",
        fates.len(),
        fates.iter().filter(|f| f.killed).count()
    );
    println!("before {before:?}\nafter  {after:?}");
    assert_eq!(
        (after.descriptors, after.threads),
        (before.descriptors, before.threads)
    );

    let grown = after.resident_kib.saturating_sub(before.resident_kib);
    assert!(grown <= RESIDENT_TOLERANCE_KIB, "{grown} KiB");
    expect_records(&service, warm_up.iter().chain(&fates));
}

/// Every client that began a test is in the record, with the outcome it had.
fn expect_records<'a>(service: &Service, fates: impl Iterator<Item = &'a Fate>) {
    let records = service.events("test_ended");
    let records: BTreeMap<&str, &Value> = records
        .iter()
        .map(|r| (r["cookie"].as_str().expect("a cookie"), r))
        .collect();

    for fate in fates {
        let cookie = fate
            .stdout
            .lines()
            .find_map(|l| l.trim().strip_prefix("Cookie: "));
        let began = fate.stdout.contains("Starting Test");
        let Some(cookie) = cookie.filter(|_| began) else {
            assert!(fate.killed, "{} never began: {}", fate.options, fate.stdout);
            continue;
        };
        let record = records
            .get(cookie.trim())
            .unwrap_or_else(|| panic!("{} is lost: {}", fate.options, fate.stdout));

        if !fate.killed {
            assert_eq!(
                (fate.code, &record["outcome"]),
                (Some(0), &Value::from("complete")),
                "{}: {record}",
                fate.options
            );
        }
    }
}

/// The server's state when the last client has gone.
fn idle(service: &Service, started: &Status) -> Status {
    let threads = |status: &Status| status.threads <= started.threads;
    let status = wait_for(Duration::from_secs(30), || {
        Some(Status::of(service.process.id())).filter(threads)
    });
    let status =
        status.unwrap_or_else(|| panic!("still busy: {:?}", Status::of(service.process.id())));

    // Connections that have finished are closed some seconds later.
    let quiet = wait_for(Duration::from_secs(15), || {
        let descriptors = Status::of(service.process.id()).descriptors;
        (descriptors <= started.descriptors + LATER_DESCRIPTORS).then_some(descriptors)
    });
    Status {
        descriptors: quiet.unwrap_or_else(|| Status::of(service.process.id()).descriptors),
        ..status
    }
}

fn run(service: &Service, length: Duration, seed: u64) -> Vec<Fate> {
    let fates = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let fates = &fates;
            scope.spawn(move || {
                let mut dice = Dice(seed * 1000 + client);
                let end = Instant::now() + length;
                while Instant::now() < end {
                    let fate = one_test(service, &mut dice);
                    fates.lock().expect("no panic").push(fate);
                }
            });
        }
    });
    fates.into_inner().expect("no panic")
}

fn one_test(service: &Service, dice: &mut Dice) -> Fate {
    let kind = KINDS[dice.below(KINDS.len() as u64) as usize];
    let mut options: Vec<&str> = kind.split_whitespace().collect();
    let time = (1 + dice.below(4)).to_string();

    if !kind.contains("-n ") && !kind.contains("-k ") {
        options.extend(["-t", &time]);
    }

    options.extend(["-V", "-i", "0.5", "--forceflush"]);
    let program = if dice.below(2) == 0 {
        original()
    } else {
        ours()
    };
    let mut client = service.client(program, &options);
    let killed = dice.below(4) == 0;
    if killed {
        end_early(&mut client, dice);
    }

    let finished = client.finish_within(Duration::from_secs(60));
    Fate {
        options: options.join(" "),
        killed,
        code: finished.code(),
        stdout: finished.stdout,
    }
}

/// Kills, interrupts or freezes the client at a random moment. A frozen one is killed once the
/// server gave it up.
fn end_early(client: &mut Process, dice: &mut Dice) {
    let moment = Instant::now() + Duration::from_millis(dice.below(3000));
    wait_until(Duration::from_secs(3), || {
        client.has_ended() || Instant::now() >= moment
    });
    if client.has_ended() {
        return;
    }

    match dice.below(3) {
        0 => client.signal(Signal::Kill),
        1 => {
            client.signal(Signal::Interrupt);
            // The original can block in its signal handler; what matters is that the server does
            // not.
            if !wait_until(Duration::from_secs(5), || client.has_ended()) {
                println!("a client did not end on an interrupt: {client:?}");
                client.signal(Signal::Kill);
            }
        }
        _ => {
            client.signal(Signal::Stop);
            let until = Instant::now() + Duration::from_secs(4);
            wait_until(Duration::from_secs(5), || Instant::now() >= until);
            client.signal(Signal::Kill);
        }
    }
}

/// Numbers that look random and repeat with their seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}
