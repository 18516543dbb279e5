//! The original iperf 2 and ours in its dialect, and what their reports say.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::cases::each_case;
use crate::deadline::wait_until;
use crate::namespaces::inside;
use crate::net::{free_port_run, is_bound_udp_beside, listens_beside};
use crate::process::{Finished, Process, Signal};
use crate::program::ours;

/// One of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iperf2 {
    /// Debian's iperf 2.1.8, or the program `IPERF2_BIN` names.
    Original,
    /// Ours, called as `iperf`.
    Ours,
}

impl Iperf2 {
    /// A command of this program with these words.
    pub fn command(self, words: &str) -> Command {
        let mut command = Command::new(self.path());
        command.arg0("iperf").args(words.split_whitespace());
        command.env("LC_ALL", "C").env("TZ", "UTC");
        command
    }

    /// Starts a client of a server on this host.
    pub fn client(self, port: u16, words: &str) -> Process {
        Process::start(self.command(&format!("-c 127.0.0.1 -p {port} {words}")))
    }

    /// The same in a network namespace.
    pub fn command_inside(self, namespace: &str, words: &str) -> Command {
        let mut command = inside(namespace, &self.path(), &[]);
        if self == Self::Ours {
            command.arg("iperf2");
        }

        command.args(words.split_whitespace()).env("TZ", "UTC");
        command
    }

    fn path(self) -> PathBuf {
        match self {
            Self::Original => env::var_os("IPERF2_BIN")
                .map_or_else(|| PathBuf::from("/usr/bin/iperf"), PathBuf::from),
            Self::Ours => ours().path().to_path_buf(),
        }
    }
}

/// A client and the server it tested against, client first.
pub const PAIRINGS: [(Iperf2, Iperf2); 3] = [
    (Iperf2::Original, Iperf2::Ours),
    (Iperf2::Ours, Iperf2::Original),
    (Iperf2::Ours, Iperf2::Ours),
];

/// A running server.
#[derive(Debug)]
pub struct Iperf2Server {
    /// Its port; the next one is free.
    pub port: u16,
    /// Its process.
    pub process: Process,
}

impl Iperf2Server {
    /// Starts a server and waits until it can be reached. It does not connect: the original would
    /// take the connection for a test.
    #[track_caller]
    pub fn start(program: Iperf2, words: &str) -> Self {
        let port = free_port_run(2);
        let process = Process::start(program.command(&format!("-s -p {port} {words}")));
        Self::await_up(process, port, words)
    }

    /// Starts a server in a network namespace.
    #[track_caller]
    pub fn start_inside(namespace: &str, program: Iperf2, port: u16, words: &str) -> Self {
        let process =
            Process::start(program.command_inside(namespace, &format!("-s -p {port} {words}")));
        Self::await_up(process, port, words)
    }

    #[track_caller]
    fn await_up(mut process: Process, port: u16, words: &str) -> Self {
        let (id, is_udp) = (
            process.id(),
            words.split_whitespace().any(|word| word == "-u"),
        );
        let is_up = || {
            if is_udp {
                is_bound_udp_beside(id, port)
            } else {
                listens_beside(id, port)
            }
        };
        process.wait_until_up(is_up);

        Self { port, process }
    }

    /// Ends the server and returns its output.
    #[track_caller]
    pub fn stop(self) -> Finished {
        self.process.signal(Signal::Interrupt);
        self.process.finish_within(Duration::from_secs(10))
    }

    /// Waits until every flow the server has announced has its line of numbers; false where one has
    /// none after two seconds. Interrupted earlier, the original waits for ever for flows it still
    /// holds.
    fn settle(&self) -> bool {
        let is_settled =
            |report: &str| totals(report).len() >= report.matches("connected with").count();
        wait_until(Duration::from_secs(2), || {
            is_settled(&self.process.stdout())
        })
    }
}

/// Tests with an original whose threads wait for each other. Between two originals, 2.1.8, one of
/// 400 tests in both directions at once ended so: its reporter and its client held a lock each.
const DEADLOCKS_MAX: usize = 2;

/// Runs one client against one server and returns the output of both.
#[track_caller]
pub fn run_iperf2(pairing: (Iperf2, Iperf2), client: &str, server: &str) -> (Finished, Finished) {
    run_iperf2_at("127.0.0.1", pairing, client, server)
}

/// The same against this address.
#[track_caller]
pub fn run_iperf2_at(
    host: &str,
    pairing: (Iperf2, Iperf2),
    client: &str,
    server: &str,
) -> (Finished, Finished) {
    for _ in 0..DEADLOCKS_MAX {
        let (client, server) = run_client(host, pairing, client, server);
        if server.settle() || pairing.1 == Iperf2::Ours {
            return (client, stopped(server));
        }
        crate::report(&format!(
            "the original did not finish its report: {server:?}"
        ));
    }

    let (client, server) = run_client(host, pairing, client, server);
    server.settle();
    (client, stopped(server))
}

#[track_caller]
fn run_client(
    host: &str,
    pairing: (Iperf2, Iperf2),
    client: &str,
    server: &str,
) -> (Finished, Iperf2Server) {
    let server = Iperf2Server::start(pairing.1, server);
    let words = client.replace("BACK", &(server.port + 1).to_string());
    let client = Process::start(
        pairing
            .0
            .command(&format!("-c {host} -p {} {words}", server.port)),
    )
    .finish();
    client.expect_code(0);
    (client, server)
}

#[track_caller]
fn stopped(server: Iperf2Server) -> Finished {
    let server = server.stop();
    server.expect_code(0);
    server
}

/// Runs a client against a server in every pairing, side by side, and checks the output of both.
pub fn each_pairing(client: &str, server: &str, check: impl Fn(&Finished, &Finished) + Sync) {
    each_case(&PAIRINGS, |pairing| {
        let (client, server) = run_iperf2(*pairing, client, server);
        check(&client, &server);
    });
}

/// A test for each mode: in every pairing a client with these words runs against a server with
/// these words, and the check reads the output of both.
#[macro_export]
macro_rules! iperf2_modes {
    ($($name:ident: $client:literal, $server:literal => $check:expr;)*) => {$(
        #[test]
        fn $name() {
            $crate::iperf2::each_pairing($client, $server, $check);
        }
    )*};
}

/// Checks that an amount is about the expected one.
#[track_caller]
pub fn near(amount: f64, expected: f64, tolerance: f64) {
    let deviation = (amount / expected - 1.0).abs();
    assert!(deviation <= tolerance, "{amount} is not about {expected}");
}

/// One line of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The text in brackets, without spaces.
    pub label: String,
    /// Start in s.
    pub start_s: f64,
    /// End in s.
    pub end_s: f64,
    /// Amount in the unit of the line.
    pub amount: f64,
    /// Bits or bytes per second, in the unit of the line.
    pub rate: f64,
    /// Text behind the rate's unit.
    pub rest: String,
}

/// The lines of numbers of a report. With `-f B` amounts are exact.
pub fn lines(report: &str) -> Vec<Line> {
    report.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Line> {
    let (label, rest) = text.strip_prefix('[')?.split_once(']')?;
    let mut words = rest.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start_s, end_s) = (start.parse().ok()?, end.parse().ok()?);

    if words.next()? != "sec" {
        return None;
    }

    let amount = words.next()?.parse().ok()?;
    words.next()?;
    let rate = words.next()?.parse().ok()?;

    words.next()?;
    Some(Line {
        label: label.trim().to_owned(),
        start_s,
        end_s,
        amount,
        rate,
        rest: words.collect::<Vec<_>>().join(" "),
    })
}

/// The lines about the whole test: the last of each label.
pub fn totals(report: &str) -> Vec<Line> {
    let mut last: Vec<Line> = Vec::new();
    for line in lines(report) {
        last.retain(|known| known.label != line.label);
        last.push(line);
    }
    last
}

/// The amounts of the streams over the whole test, sums left out, in ascending order.
pub fn amounts(report: &str) -> Vec<f64> {
    let mut amounts: Vec<f64> = totals(report)
        .iter()
        .filter(|line| line.label.trim_start_matches('*').parse::<u32>().is_ok())
        .map(|line| line.amount)
        .collect();
    amounts.sort_unstable_by(f64::total_cmp);
    amounts
}
